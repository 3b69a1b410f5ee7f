import { cp, readFile, rename, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { random } from '../../../../runtime/domain/index.js';
import { createRemoteTrainer } from '../../../../runtime/trainer/remote/engine.js';
import { imitationRate } from '../../../../runtime/trainer/schedule.js';
import type { LearnerState } from '../../../helpers/engine/learner.js';
import type { Disk } from '../../../helpers/engine/tinker.js';
import { open, start, saved, sample, serve, batch, closeAll, folder } from '../../../helpers/engine/remoteTrainer.js';

afterEach(closeAll);

describe('every batch is trained exactly once', () => {
  const BATCHES = ['b1', 'b2', 'b3'].map((name, k) =>
    batch(
      name,
      Array.from({ length: 4 }, (_, i) => sample(10 * k + i)),
      { epochs: 2 },
    ),
  );
  async function undisturbed(): Promise<Float64Array> {
    const { s, trainer } = await start({ minibatch: 2 });
    for (const b of BATCHES) await trainer.update(b);
    return saved(s.disk);
  }
  it.each([
    ['dies between forward_backward and optim_step', 'optim_step', { die: 'before' }],
    ['dies when the optimizer step is done and not answered', 'optim_step', { die: 'after' }],
    ['loses the answer of an optimizer step', 'optim_step', { drop: 'after' }],
    ['never receives an optimizer step', 'optim_step', { drop: 'before' }],
    ['dies in a pass', 'forward_backward', { die: 'after' }],
    ['dies while it saves', 'save_weights', { die: 'after' }],
    ['refuses a pass for good', 'forward_backward', { status: 422 }],
    ['answers rubbish', 'optim_step', { garbage: 'rubbish' }],
  ] as const)('a server that %s', async (_, path, trouble) => {
    const expected = await undisturbed(),
      { s, trainer } = await start({ minibatch: 2 });
    const versions: number[] = [];
    for (const [i, b] of BATCHES.entries()) {
      if (i === 1) s.next(path, trouble);
      versions.push((await trainer.update(b)).version);
    }
    expect(versions).toEqual([1, 2, 3]);
    expect(saved(s.disk)).toEqual(expected);
  });
  it.each(['optim_step', 'forward_backward'])(
    'a server that loses the answer of %s and refuses the number it had',
    async (path) => {
      const expected = await undisturbed(),
        { s, trainer, restarts } = await start({ minibatch: 2 }, await serve({ refusesRepeats: true }));
      for (const [i, b] of BATCHES.entries()) {
        if (i === 1) s.next(path, { drop: 'after' });
        await trainer.update(b);
      }
      expect(saved(s.disk)).toEqual(expected);
      expect(restarts).toHaveLength(1);
    },
  );
  const FULL = { status: 422, body: { detail: 'OSError: [Errno 28] No space left on device' } };
  it('a full disk is not tried over and over: whoever waits for room asks again, and nothing is learned twice', async () => {
    const expected = await undisturbed(),
      { s, trainer, restarts } = await start({ minibatch: 2 });
    for (const [i, b] of BATCHES.entries()) {
      if (i === 1) {
        const steps = s.count('optim_step');
        s.next('save_weights', FULL);
        await expect(trainer.update(b)).rejects.toThrow('No space left');
        expect(s.count('optim_step')).toBe(steps + 4);
      }
      await trainer.update(b);
    }
    expect(saved(s.disk)).toEqual(expected);
    expect(restarts).toEqual([]);
  });
  it('a lesson that found the disk full goes on where it stopped', async () => {
    const shown = batch('lesson', [sample(1), sample(2)]),
      options = { steps: 55, lr: 0.02, shift: 0 },
      calm = await start({ imitateSamples: 1 }),
      expected = await calm.trainer.imitate!(shown, options),
      disk = await serve();
    let steps = 0;
    // Its first part was saved, the second is not.
    const onProgress = (): void => {
        if (++steps === 52) disk.next('save_weights', FULL);
      },
      { s, trainer } = await start({ imitateSamples: 1, onProgress }, disk);
    await expect(trainer.imitate!(shown, options)).rejects.toThrow('No space left');
    const report = await trainer.imitate!(shown, options);
    expect([report.version, report.optimizerSteps]).toEqual([expected.version, expected.optimizerSteps]);
    expect(saved(s.disk)).toEqual(saved(calm.s.disk));
  });
  it('a server that forgets the weights of a model that is unloaded', async () => {
    const expected = await undisturbed(),
      { s, trainer } = await start(
        { minibatch: 2, leaveModels: true },
        await serve({ faults: ['weights-go-with-model'] }),
      );
    for (const [i, b] of BATCHES.entries()) {
      if (i === 1) s.next('optim_step', { status: 422 });
      if (i === 2) await trainer.restore(await trainer.checkpoint());
      await trainer.update(b);
    }
    expect(saved(s.disk)).toEqual(expected);
  });
  it('an optimizer step that timed out is asked again by its number', async () => {
    const expected = await undisturbed(),
      { s, trainer, restarts, options } = await start({ minibatch: 2 });
    await trainer.close();
    const again = await createRemoteTrainer({
      ...options,
      server: { ...options.server, submitMs: 4000, deadlineMs: 6000, sleep: undefined },
    });
    open.push(() => again.close());
    s.next('optim_step', { hang: true }, { hang: true });
    for (const b of BATCHES) await again.update(b);
    expect(saved(s.disk)).toEqual(expected);
    expect(restarts).toEqual([]);
    const seqs = s.calls
      .filter((c) => c.path.endsWith('optim_step'))
      .map((c) => (JSON.parse(c.body.toString()) as { seq_id: number }).seq_id);
    expect(seqs[1]).toBe(seqs[0]);
    expect(new Set(seqs).size).toBe(12);
  });
  it('a trainer that is started anew goes on from its checkpoint, and a batch asked twice is trained once', async () => {
    const expected = await undisturbed(),
      one = await start({ minibatch: 2 });
    await one.trainer.update(BATCHES[0]!);
    const report = await one.trainer.update(BATCHES[1]!),
      ref = await one.trainer.checkpoint();
    expect(ref).toEqual({ version: 2, dir: join(one.dir, 'v000002') });
    const manifest = JSON.parse(await readFile(join(ref.dir, 'manifest.json'), 'utf8')) as { values: object };
    expect(manifest.values).toMatchObject({ version: 2, base: 'tiny', rank: 0, trained: { batch: 'b2' } });
    // Half of the third, which dies with its trainer.
    one.s.next('optim_step', { status: 403 });
    await one.trainer.close();
    await one.s.restart();
    const two = await start({ minibatch: 2, dir: one.dir }, one.s);
    await two.trainer.restore(ref);
    expect(await two.trainer.update(BATCHES[1]!)).toEqual(report);
    expect((await two.trainer.update(BATCHES[2]!)).version).toBe(3);
    expect(saved(two.s.disk)).toEqual(expected);
  });
  it('20 kills of server and runtime at random moments change no bit and no number of steps', async () => {
    const batches = Array.from({ length: 12 }, (_, k) =>
        batch(
          `k${k}`,
          Array.from({ length: 4 }, (__, i) => sample(10 * k + i)),
          { epochs: 2 },
        ),
      ),
      last = (disk: Disk): LearnerState => [...disk.values()].at(-1)!.state;
    const calm = await start({ minibatch: 2 });
    for (const b of batches) await calm.trainer.update(b);

    const rng = random('kills'),
      paths = ['forward_backward', 'optim_step', 'save_weights', 'retrieve_future', 'load_weights', 'create_model'];
    let now = await start({ minibatch: 2 }),
      ref = await now.trainer.checkpoint(),
      kills = { server: 0, runtime: 0 };
    const { s, dir } = now;
    for (let k = 0; k < batches.length;) {
      const { trainer } = now,
        how = kills.server + kills.runtime < 20 ? rng.pick(['server', 'runtime'] as const) : 'none';
      // What a runtime was at when it was killed is known to the server alone.
      const timer = how === 'runtime' ? setTimeout(() => void trainer.close(), rng.int(25)) : undefined;
      if (how === 'server') s.next(rng.pick(paths), { die: rng.pick(['before', 'after']) });
      const done = await trainer.update(batches[k]!).then(
        () => true,
        (e: unknown) => {
          expect(e).toMatchObject({ kind: 'cancelled' });
          return false;
        },
      );
      clearTimeout(timer);
      if (how !== 'none') kills = { ...kills, [how]: kills[how] + 1 };
      if (done) {
        const saved = await trainer.checkpoint().catch(() => undefined);
        // The journal names a batch and its checkpoint in one record: without it the batch is trained again.
        if (saved) {
          ref = saved;
          k++;
        }
      }
      if (how !== 'runtime') continue;
      await trainer.close();
      now = await start({ minibatch: 2, dir }, s);
      await now.trainer.restore(ref);
    }
    expect(kills.server + kills.runtime).toBe(20);
    expect(Math.min(kills.server, kills.runtime)).toBeGreaterThan(4);
    expect(ref.version).toBe(batches.length);
    expect(last(s.disk)).toEqual(last(calm.s.disk));
  });
  it('a failed update leaves nothing behind: the batch after it is trained from the same weights', async () => {
    const { s, trainer, restarts } = await start();
    const failing = { status: 422, body: { detail: 'no' } };
    s.next('optim_step', ...Array.from({ length: 9 }, () => failing));
    await expect(trainer.update(BATCHES[0]!)).rejects.toMatchObject({ kind: 'trainer.remote' });
    expect(restarts).toHaveLength(2);
    await trainer.update(BATCHES[1]!);
    const alone = await start();
    await alone.trainer.update(BATCHES[1]!);
    expect(saved(s.disk)).toEqual(saved(alone.s.disk));
  });
  it('close ends a call that hangs', async () => {
    const { s, trainer } = await start();
    s.next('forward_backward', { hang: true });
    const update = trainer.update(BATCHES[0]!);
    setTimeout(() => void trainer.close(), 50);
    await expect(update).rejects.toMatchObject({ kind: 'cancelled' });
    await expect(trainer.update(BATCHES[1]!)).rejects.toMatchObject({ kind: 'cancelled' });
  });
  it('exports weights of each version under a name of its own, once', async () => {
    const { s, trainer } = await start();
    const a = await trainer.exportWeights();
    expect(await trainer.exportWeights()).toEqual(a);
    await trainer.update(BATCHES[0]!);
    const b = await trainer.exportWeights();
    expect([a.version, b.version, s.count('save_weights_for_sampler')]).toEqual([0, 1, 2]);
    expect(s.tinker.adapter(b.path)).toEqual(saved(s.disk));
    // Anew only what is the trainer's still; from then on it is what is exported.
    const anew = await trainer.exportAnew(1);
    expect(anew).toEqual({ version: 1, path: expect.not.stringMatching(b.path) as string });
    expect(s.tinker.adapter(anew!.path)).toEqual(s.tinker.adapter(b.path));
    expect(await trainer.exportWeights()).toEqual(anew);
    expect(await trainer.exportAnew(0)).toBeUndefined();
  });
  it('refuses a checkpoint of another model', async () => {
    const one = await start(),
      ref = await one.trainer.checkpoint(),
      two = await start({ model: { base: 'tiny', rank: 4 }, dir: one.dir }, one.s);
    await expect(two.trainer.restore(ref)).rejects.toMatchObject({ kind: 'trainer.invalid' });
  });
  it('weights that no checkpoint names are deleted on the server; those of another run stay', async () => {
    const one = await start(),
      { s, trainer, dir } = one;
    const foreign = 'tinker://other:train:0/weights/v000001-x';
    await trainer.update(BATCHES[0]!);
    const first = await trainer.checkpoint(),
      firstUri = [...s.disk.keys()].at(-1)!;
    s.disk.set(foreign, s.disk.get(firstUri)!);
    const exported = await trainer.exportWeights();
    await trainer.update(BATCHES[1]!);
    await trainer.checkpoint();
    // Both are named by a checkpoint; the weights before the first update are not.
    const weights = (): string[] => [...s.disk.keys()].filter((k) => k.includes('/weights/'));
    await expect.poll(() => weights()).toHaveLength(3);
    expect(weights()).toEqual(expect.arrayContaining([foreign, firstUri]));
    await rm(first.dir, { recursive: true });
    await trainer.checkpoint();
    await expect.poll(() => weights()).toHaveLength(2);
    expect(weights()).not.toContain(firstUri);
    void trainer.forget(exported.path);
    await expect.poll(() => [...s.disk.keys()]).not.toContain(exported.path);
    // What is left is enough to go on from.
    await trainer.close();
    const two = await start({ dir }, s);
    await two.trainer.restore({ version: 2, dir: join(dir, 'v000002') });
    expect((await two.trainer.update(BATCHES[2]!)).version).toBe(3);
    expect(s.disk.has(foreign)).toBe(true);
  });

  const weightsOn = (s: { readonly disk: Disk }): string[] => [...s.disk.keys()].filter((k) => k.includes('/weights/'));
  it('a run that goes on after a crash deletes what it saved before, and not what another run may need', async () => {
    const root = await folder(),
      dirOf = (run: string): string => join(root, run, 'checkpoints'),
      one = await start({ dir: dirOf('a') }),
      { s, trainer } = one;
    await trainer.update(BATCHES[0]!);
    const first = await trainer.checkpoint(),
      [start0, uri1] = weightsOn(s);
    await trainer.update(BATCHES[1]!);
    const second = await trainer.checkpoint(),
      uri2 = weightsOn(s).at(-1),
      exported = await trainer.exportWeights();
    await expect.poll(() => weightsOn(s)).not.toContain(start0);

    // Another run starts from the first; the whole folder is copied.
    const other = await start({ dir: dirOf('b') }, s);
    await other.trainer.restore(first);
    await cp(join(root, 'a'), join(await folder(), 'copy'), { recursive: true });
    await cp(join(root, 'a'), join(root, 'copy'), { recursive: true });
    const copy = await start({ dir: dirOf('copy') }, s);
    await copy.trainer.restore({ version: 2, dir: join(dirOf('copy'), 'v000002') });
    await rm(join(dirOf('copy'), 'v000001'), { recursive: true });
    await copy.trainer.forgetEarlier();
    await copy.trainer.checkpoint();
    await copy.trainer.close();

    // As after kill -9: nothing but its folder says what it saved.
    const two = await start({ dir: dirOf('a') }, s);
    await two.trainer.restore(second);
    await two.trainer.forgetEarlier();
    expect([...s.disk.keys()]).not.toContain(exported.path);
    await rm(first.dir, { recursive: true });
    await rm(join(root, 'copy'), { recursive: true });
    await two.trainer.checkpoint();
    await two.trainer.forgetEarlier();
    expect(weightsOn(s)).toEqual(expect.arrayContaining([uri1, uri2]));

    await rm(join(root, 'b'), { recursive: true });
    await two.trainer.checkpoint();
    await expect.poll(() => weightsOn(s)).not.toContain(uri1);
    expect(weightsOn(s)).toContain(uri2);
  });
  it('what only tries a checkpoint leaves nothing on the server: not the weights that nobody goes on from', async () => {
    const root = await folder(),
      dirOf = (run: string): string => join(root, run, 'checkpoints'),
      { s, trainer } = await start({ dir: dirOf('a') });
    await trainer.update(BATCHES[0]!);
    const first = await trainer.checkpoint(),
      needed = weightsOn(s).at(-1)!;
    await expect.poll(() => weightsOn(s)).toEqual([needed]);
    for (const from of [undefined, first]) {
      const tried = await start({ dir: dirOf('a/evaluation.scratch') }, s);
      if (from) await tried.trainer.restore(from);
      const { path } = await tried.trainer.exportWeights();
      await tried.trainer.forget(path);
      await tried.trainer.forgetSaved();
      await tried.trainer.close();
      expect([...s.disk.keys()]).toEqual([needed]);
    }
  });
  it('a run that was moved is still its own, through a link too; what stands in its old place is not', async () => {
    const root = await folder(),
      dirOf = (run: string): string => join(root, run, 'checkpoints'),
      one = await start({ dir: dirOf('a') }),
      { s } = one;
    await one.trainer.update(BATCHES[0]!);
    await one.trainer.checkpoint();
    await one.trainer.update(BATCHES[1]!);
    await one.trainer.checkpoint();
    const exported = await one.trainer.exportWeights();
    await one.trainer.close();
    await rename(join(root, 'a'), join(root, 'moved'));
    // A copy in the same place, as on another machine.
    await cp(join(root, 'moved'), join(root, 'a'), { recursive: true });
    const copy = await start({ dir: dirOf('a') }, s);
    await copy.trainer.restore({ version: 2, dir: join(dirOf('a'), 'v000002') });
    await copy.trainer.forgetEarlier();
    await copy.trainer.close();
    expect([...s.disk.keys()]).toContain(exported.path);

    // A run beside it starts from its first checkpoint; that is seen from behind a link elsewhere, too.
    const other = await start({ dir: dirOf('b') }, s);
    await other.trainer.restore({ version: 1, dir: join(dirOf('moved'), 'v000001') });
    await other.trainer.close();
    await rm(join(root, 'a'), { recursive: true });
    const link = join(await folder(), 'link');
    await symlink(join(root, 'moved'), link);
    const moved = await start({ dir: join(link, 'checkpoints') }, s);
    await moved.trainer.restore({ version: 2, dir: join(link, 'checkpoints', 'v000002') });
    await moved.trainer.forgetEarlier();
    expect([...s.disk.keys()]).not.toContain(exported.path);
    const [first] = weightsOn(s);
    await rm(join(dirOf('moved'), 'v000001'), { recursive: true });
    await moved.trainer.checkpoint();
    expect(weightsOn(s)).toContain(first);
    // Another one beside that link.
    await rename(join(root, 'b'), join(dirname(link), 'b'));
    await moved.trainer.checkpoint();
    expect(weightsOn(s)).toContain(first);
    await rm(join(dirname(link), 'b'), { recursive: true });
    await moved.trainer.checkpoint();
    await expect.poll(() => weightsOn(s)).not.toContain(first);
  });
  it('what the server cannot delete just now is asked for again', async () => {
    const { s, trainer } = await start();
    await trainer.update(BATCHES[0]!);
    s.next(weightsOn(s)[0]!.split('/').at(-1)!, { drop: 'before' });
    await trainer.checkpoint();
    await expect.poll(() => s.calls.filter((c) => c.method === 'DELETE').length).toBe(1);
    expect(weightsOn(s)).toHaveLength(2);
    await trainer.checkpoint();
    await expect.poll(() => weightsOn(s)).toHaveLength(1);
  });
  it('a lesson that was interrupted, and goes on in another process, teaches what a whole one does', async () => {
    const lesson = batch(
        'lesson',
        [1, 2, 3, 4, 5].map((i) => sample(i)),
      ),
      options = { steps: 20, lr: 0.01, shift: 0 },
      whole = await start({ imitateSamples: 2 });
    await whole.trainer.imitate!(lesson, options);
    const rates: number[] = [],
      onProgress = (p: { readonly kind: string; readonly step?: number; readonly lr?: number }): void => {
        rates.push(p.lr!);
        if (p.step === 8) one.trainer.interrupt();
      },
      one = await start({ imitateSamples: 2, onProgress });
    expect((await one.trainer.imitate!(lesson, options)).optimizerSteps).toBe(8);
    const ref = await one.trainer.checkpoint();
    await one.trainer.close();
    const two = await start({ imitateSamples: 2, onProgress, dir: one.dir }, one.s);
    await two.trainer.restore(ref);
    expect((await two.trainer.imitate!(lesson, { ...options, from: 8 })).optimizerSteps).toBe(12);
    expect(rates).toEqual(Array.from({ length: 20 }, (_, i) => imitationRate(0.01, i, 20)));
    expect(saved(one.s.disk)).toEqual(saved(whole.s.disk));
  });
  it('a long lesson leaves its latest weights alone', async () => {
    const { s, trainer } = await start();
    await trainer.imitate!(batch('lesson', [sample(1)]), { steps: 101, lr: 0.01, shift: 0 });
    expect(s.count('save_weights')).toBe(4);
    await expect.poll(() => weightsOn(s)).toHaveLength(1);
  });
  it('a model that cannot be made ready is unloaded', async () => {
    const { s, trainer } = await start(),
      ref = await trainer.checkpoint();
    s.next('load_weights', { status: 422 }, { status: 422 }, { status: 422 });
    await expect(trainer.restore(ref)).rejects.toMatchObject({ kind: 'trainer.remote' });
    // The first is the one that was there before.
    await expect.poll(() => s.count('unload_model')).toBe(1 + 3);
  });
});
