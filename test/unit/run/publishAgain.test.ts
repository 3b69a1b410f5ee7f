import { afterEach, describe, expect, it } from 'vitest';
import { id, StudioError, type ReplicaId } from '../../../runtime/domain/index.js';
import { pause } from '../../../runtime/concurrency/pause.js';
import { startEndpointReplica, type AdapterWeights } from '../../../runtime/policy/remote/endpointReplica.js';
import type { ChatAnswer, ChatCall } from '../../../runtime/policy/remote/endpointReplica.js';
import type { SyncReport } from '../../../runtime/policy/types.js';
import { systemClock } from '../../../runtime/rollout/clock.js';
import { ModelPool } from '../../../runtime/rollout/modelPool.js';
import { LoadedWeights } from '../../../runtime/run/backends/loadedWeights.js';
import { publishAgain, type PublishAgainOptions } from '../../../runtime/run/backends/publishAgain.js';
import { batch, closeAll, open, sample, serve, start } from '../../helpers/engine/remoteTrainer.js';
import type { ReferenceServer } from '../../helpers/engine/server.js';

afterEach(closeAll);
const never = new AbortController().signal;
const refusal = (): StudioError => new StudioError('policy.remote', 'No such file.', 'Look at the folder.');
const report = (version: number): SyncReport => ({ version, replicas: [], failed: 0 });

describe('weights that a model server refuses', () => {
  const weights: AdapterWeights = { version: 2, path: 'p/1', saved: '1' };
  /** `answers`: what each publish comes to; `newer`: the trainer has gone on. */
  function publishing(
    answers: readonly (Error | 'taken')[],
    o: Partial<PublishAgainOptions<SyncReport>> & { newer?: boolean } = {},
  ) {
    const seen = { published: [] as string[], waits: [] as number[], notes: [] as string[], forgotten: [] as string[] };
    let files = 1;
    const done = publishAgain(weights, {
      publish: (w) => {
        const answer = answers[seen.published.push(w.path) - 1]!;
        return answer === 'taken' ? Promise.resolve(report(w.version)) : Promise.reject(answer);
      },
      exportAnew: (w) => {
        if (o.newer) return Promise.resolve(undefined);
        files++;
        return Promise.resolve({ ...w, path: `p/${files}`, saved: `${files}` });
      },
      forget: (w) => seen.forgotten.push(w.saved!),
      onNote: (text) => seen.notes.push(text),
      signal: never,
      wait: (ms) => {
        seen.waits.push(ms);
        return Promise.resolve();
      },
      ...o,
    });
    return { done, seen };
  }

  it('are exported anew after a pause and published again; the refused files go', async () => {
    const { done, seen } = publishing([refusal(), refusal(), 'taken']);
    expect(await done).toEqual(report(2));
    expect(seen).toMatchObject({ published: ['p/1', 'p/2', 'p/3'], waits: [5000, 10_000], forgotten: ['1', '2'] });
    expect(seen.notes).toEqual([
      expect.stringMatching(/^Version 2 was refused .* in 5 s.*attempt 2 of 4.* No such file\. Look at the folder\.$/),
      expect.stringContaining('in 10 s'),
      'Version 2 is published, at attempt 3.',
    ]);
  });

  it('are offered as they are where the trainer has newer ones by now, or cannot export', async () => {
    const gone = publishing([refusal(), 'taken'], { newer: true });
    expect(await gone.done).toEqual(report(2));
    expect(gone.seen).toMatchObject({ published: ['p/1', 'p/1'], forgotten: [] });
    const away = publishing([refusal(), 'taken'], { exportAnew: () => Promise.reject(new Error('away')) });
    expect(await away.done).toEqual(report(2));
    expect(away.seen.published).toEqual(['p/1', 'p/1']);
  });

  it('end the run when three more attempts did not help, with what was tried and what to do; no files stay', async () => {
    const { done, seen } = publishing([refusal(), refusal(), refusal(), refusal()]);
    await expect(done).rejects.toMatchObject({
      kind: 'policy.remote',
      message: expect.stringMatching(/published 4 times, with 35 s of pauses.*No such file\./) as string,
      error: { remedy: expect.stringMatching(/^Look at the folder\. Then resume the run/) as string },
    });
    expect(seen.forgotten).toEqual(['1', '2', '3', '4']);
  });

  it('of a start are given up sooner, and nothing is said of a version before', async () => {
    const { done, seen } = publishing([refusal(), refusal(), refusal()], { first: true });
    await expect(done).rejects.toMatchObject({
      kind: 'policy.remote',
      message: expect.stringMatching(/published 3 times, with 15 s of pauses/) as string,
      error: { remedy: 'Look at the folder. Then start or resume the run again.' },
    });
    expect(seen.forgotten).toEqual(['1', '2', '3']);
    expect(seen.notes[0]).toMatch(/attempt 2 of 3\); rollouts begin once it is taken\. No such file\./);
  });

  it('are not published again where something else is wrong', async () => {
    const lost = new StudioError('policy.lost', 'Every replica has died.', '');
    const { done, seen } = publishing([lost]);
    await expect(done).rejects.toBe(lost);
    expect(seen).toMatchObject({ published: ['p/1'], notes: [], forgotten: [] });
  });

  it.each(['the pause', 'the export'])('are given up at once when the run is stopped during %s', async (during) => {
    const stop = new AbortController(),
      hangs = new Promise<undefined>(() => undefined);
    const { done, seen } = publishing([refusal(), 'taken'], {
      signal: stop.signal,
      ...(during === 'the pause'
        ? { wait: pause, onNote: () => setImmediate(() => stop.abort()) }
        : {
            exportAnew: () => {
              setImmediate(() => stop.abort());
              return hangs;
            },
          }),
    });
    await expect(done).rejects.toMatchObject({ kind: 'cancelled' });
    expect(seen.published).toEqual(['p/1']);
  });
});

describe('the files of exported weights', () => {
  const [a, b] = [id<ReplicaId>('a'), id<ReplicaId>('b')];
  const files = (): { loaded: LoadedWeights; gone: string[] } => {
    const gone: string[] = [],
      loaded = new LoadedWeights((path) => Promise.resolve(void gone.push(path)));
    loaded.oldest = () => 1;
    return { loaded, gone };
  };
  const of = (version: number, saved: string): AdapterWeights => ({ version, path: saved, saved });

  it('go when refused, unless a server has taken them', () => {
    const { loaded, gone } = files();
    loaded.refused(of(2, 'never loaded'));
    loaded.change(a, of(2, 'unloaded'), true);
    loaded.change(a, of(2, 'unloaded'), false);
    loaded.refused(of(2, 'unloaded'));
    expect(gone).toEqual(['never loaded', 'unloaded']);
    loaded.change(a, of(2, 'taken'), true);
    loaded.refused(of(2, 'taken'));
    expect(gone).toHaveLength(2);
  });

  it('of one version, each a server has taken, go when newer ones act everywhere', () => {
    const { loaded, gone } = files();
    loaded.change(a, of(2, 'first'), true);
    loaded.change(b, of(2, 'anew'), true);
    // The first server has the next version and the second has not: the oldest is still 2.
    loaded.oldest = () => 2;
    loaded.change(a, of(2, 'first'), false);
    expect(gone).toEqual([]);
    loaded.oldest = () => 3;
    loaded.change(b, of(2, 'anew'), false);
    expect(gone.sort()).toEqual(['anew', 'first']);
  });

  it('that a restarted server was given in place of others of that version are all it has', () => {
    const { loaded, gone } = files();
    loaded.change(a, of(2, 'first'), true);
    loaded.change(a, of(2, 'anew'), true);
    loaded.oldest = () => 3;
    loaded.change(a, of(2, 'anew'), false);
    expect(gone.sort()).toEqual(['anew', 'first']);
  });
});

describe('a trainer and two servers, one of which refuses a version once', () => {
  const exportsOn = (s: ReferenceServer): string[] => [...s.disk.keys()].filter((k) => k.includes('/sampler_weights/'));
  const adaptersOn = async (s: ReferenceServer): Promise<{ id: string; root: string }[]> => {
    const list = (await (await fetch(`${s.url}/v1/models`)).json()) as { data: { id: string; root: string }[] };
    return list.data.filter((m) => m.id !== s.baseModel);
  };

  it('it acts with new files, the other with the first, and what nobody uses is deleted', async () => {
    const { s: one, trainer } = await start(),
      two = await serve({ disk: one.disk }),
      loaded = new LoadedWeights((path) => trainer.forget(path)),
      notes: string[] = [];
    const exported = async (): Promise<AdapterWeights> => {
      const { version, path } = await trainer.exportWeights();
      return { version, path, saved: path };
    };
    const servers = new Map([one, two].map((s) => [id<ReplicaId>(s.url), s]));
    const pool = await ModelPool.start<ChatCall, ChatAnswer, AdapterWeights>({
      replicas: [...servers.keys()],
      weights: await exported(),
      clock: systemClock,
      restart: { baseMs: 5, maxMs: 20, attempts: 40 },
      factory: (replica, weights) =>
        startEndpointReplica(
          {
            id: replica,
            run: 'run',
            start: 'a',
            url: `${servers.get(replica)!.url}/v1`,
            weights,
            onLoaded: (w, there) => loaded.change(replica, w, there),
          },
          never,
        ),
    });
    open.push(() => pool.close());
    loaded.oldest = () => pool.oldest;
    const publish = async (): Promise<SyncReport> =>
      publishAgain(await exported(), {
        publish: (w) => pool.publish(w),
        async exportAnew(w) {
          const anew = await trainer.exportAnew(w.version);
          return anew && { ...w, path: anew.path, saved: anew.path };
        },
        forget: (w) => loaded.refused(w),
        onNote: (text) => notes.push(text),
        signal: never,
        patience: { attempts: 3, baseMs: 1, maxMs: 1 },
      });

    await trainer.update(batch('b1', [sample(0), sample(1)]));
    two.next('/load_lora_adapter', { status: 500, body: { message: 'file not fully covered' } });
    expect(await publish()).toMatchObject({ version: 1 });
    expect(notes).toEqual([expect.stringContaining('file not fully covered'), expect.stringContaining('attempt 2')]);
    expect(pool.oldest).toBe(1);
    const [[first], [anew]] = [await adaptersOn(one), await adaptersOn(two)];
    expect([first!.id, anew!.id]).toEqual(['run.a@v1', 'run.a@v1']);
    expect(first!.root).not.toBe(anew!.root);
    await expect.poll(() => exportsOn(one).sort()).toEqual([first!.root, anew!.root].sort());
    // The first server's replica is lost and started again, with the files that were published last.
    one.next('/chat/completions', { status: 500 });
    const call = { body: { messages: [{ role: 'user', content: 'go' }], max_tokens: 1 }, extras: {}, signal: never };
    await Promise.all(['s', 't'].map((session) => pool.decide(call, { session, signal: never })));
    await expect.poll(async () => (await adaptersOn(one)).map((m) => m.root)).toEqual([anew!.root]);

    // Refused for good: nothing of it stays, and the version before acts.
    await trainer.update(batch('b2', [sample(2), sample(3)]));
    const before = exportsOn(one);
    one.next('/load_lora_adapter', ...Array.from({ length: 4 }, () => ({ status: 400, body: 'rank too high' })));
    await expect(publish()).rejects.toMatchObject({
      kind: 'policy.remote',
      message: expect.stringContaining('published 4 times') as string,
    });
    expect(pool.oldest).toBe(1);
    expect((await adaptersOn(one)).map((m) => m.id)).toEqual(['run.a@v1']);
    await expect.poll(() => exportsOn(one)).toEqual(before);

    await trainer.update(batch('b3', [sample(4), sample(5)]));
    await publish();
    await expect.poll(() => exportsOn(one)).toHaveLength(1);
    expect((await adaptersOn(two)).map((m) => m.root)).toEqual(exportsOn(one));
  });
});
