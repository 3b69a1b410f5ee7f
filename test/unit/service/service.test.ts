import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { PRESET_NAMES } from '../../../runtime/domain/index.js';
import { decodePng } from '../../../runtime/data/store/png.js';
import { PngFrameStore } from '../../../runtime/data/store/frames.js';
import { RunStore } from '../../../runtime/data/store/runStore.js';
import * as m from '../../../runtime/protocol/methods.js';
import { parseTrajectory } from '../../../runtime/protocol/trajectoryFile.js';
import type { RunSummary, TrajectoryRow, TrajectoryView } from '../../../runtime/protocol/types.js';
import {
  createStudioService,
  type Broadcast,
  type EventBatch,
  type EventQuery,
  type StudioService,
} from '../../../runtime/service/index.js';
import { bundle } from '../../helpers/data/manager.js';
import { writeSyntheticRun, type SyntheticRun } from '../../helpers/data/syntheticRun.js';

/** The service over real run folders, with its real workers; no desktops. */
let dir: string, entry: { file: string }, truth: SyntheticRun, run: string, service: StudioService;
const open: StudioService[] = [];
const make = (): StudioService => {
  const s = createStudioService({ entry, cacheDir: join(dir, 'cache'), log: () => undefined });
  open.push(s);
  return s;
};
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-service-'));
  entry = await bundle('runtime/main.ts', 'runtime');
  run = join(dir, 'runs', 'one');
  const frames = new PngFrameStore(join(run, 'frames')),
    data = Buffer.alloc(640 * 400 * 4, 100);
  const { hash } = await frames.put({ width: 640, height: 400, data, capturedAt: 0 });
  truth = await writeSyntheticRun(run, { groups: 40, size: 4, steps: 4, close: 'finished', frame: () => hash });
  service = make();
});
afterEach(async () => {
  for (const s of open.splice(1)) await s.close({ now: true });
});
afterAll(async () => {
  await service.close({ now: true });
  await rm(dir, { recursive: true, force: true });
});

const never = new AbortController().signal;
const call = async <R>(method: { readonly method: string }, params: unknown, s = service): Promise<R> =>
  s.handlers.get(method.method)!(params, { signal: never, notify: () => undefined }) as Promise<R>;
async function take(
  q: Partial<EventQuery>,
  until: (b: EventBatch) => boolean = (b) => b.ended === true,
  s = service,
): Promise<EventBatch[]> {
  const out: EventBatch[] = [],
    stop = new AbortController();
  for await (const b of s.events({ run, sinceSeq: 0, ...q }, stop.signal)) {
    out.push(b);
    if (until(b)) stop.abort();
  }
  return out;
}
const list = async (roots: string[], s = service): Promise<readonly RunSummary[]> =>
  (await call<{ runs: RunSummary[] }>(m.listRuns, { roots }, s)).runs;

describe('handlers', () => {
  it('answer every request of the protocol but those of the server, and check what they are given', async () => {
    const own = Object.values(m).flatMap((r) =>
      typeof r === 'object' && 'numberOfParams' in r && r.constructor.name === 'RequestType' ? [r.method] : [],
    );
    const servers = own.filter((n) => /^(daemon|events)\//.test(n) || n === 'desktop/watch' || n === 'desktop/unwatch');
    expect([...service.handlers.keys()].sort()).toEqual(own.filter((n) => !servers.includes(n)).sort());
    for (const [name, handle] of service.handlers)
      await expect(handle({ bogus: 1 }, { signal: never, notify: () => undefined }), name).rejects.toMatchObject({
        kind: 'params.invalid',
        remedy: expect.stringMatching(/./) as string,
      });
  });

  it('report what does not exist as not found', async () => {
    for (const [method, p] of [
      [m.getRun, {}],
      [m.listTrajectories, {}],
      [m.getTrajectory, { rollout: 'r' }],
      [m.getLanes, { width: 100 }],
    ] as const)
      await expect(call(method, { run: join(dir, 'nowhere'), ...p }), method.method).rejects.toMatchObject({
        kind: 'not.found',
      });
    await expect(call(m.stopRun, { run })).rejects.toMatchObject({ kind: 'not.found' });
    await expect(call(m.restartDesktop, { desktop: 'd1' })).rejects.toMatchObject({ kind: 'not.found' });
    await expect(service.watch('d1', { maxFps: 5 }, never)).rejects.toMatchObject({ kind: 'not.found' });
    await expect(service.head(join(dir, 'nowhere'))).rejects.toMatchObject({ kind: 'not.found' });
    await expect(call(m.startRun, { base: dir, text: '{"sed": 1}' })).rejects.toMatchObject({
      kind: 'config.invalid',
      message: expect.stringContaining('seed') as string,
    });
  });

  it('templates are run files', async () => {
    for (const preset of PRESET_NAMES) {
      const { text } = await call<{ text: string }>(m.template, { preset }),
        { parseRunText } = await import('../../../runtime/config/index.js');
      expect(parseRunText(text, preset).preset).toBe(preset);
    }
  });
});

describe('runs', () => {
  it('are listed with how they ended; one that cannot be read is listed with why', async () => {
    const broken = join(dir, 'runs', 'broken'),
      cut = join(dir, 'runs', 'cut');
    await mkdir(broken, { recursive: true });
    await writeFile(join(broken, 'run.json'), '{"createdAt": 5, "id": 7}');
    await writeSyntheticRun(cut, { groups: 2, size: 2, running: 1 });
    const before = await list([join(dir, 'runs'), run]);
    expect(before.map((r) => [r.run, r.state, r.damaged?.kind])).toEqual(
      expect.arrayContaining([
        [run, 'finished', undefined],
        [cut, 'interrupted', undefined],
        [broken, 'interrupted', 'store.damaged'],
      ]),
    );
    expect(before).toHaveLength(3);
    // Kept beside a mark of the journal: told again without opening it, until something is written.
    expect(await list([join(dir, 'runs')], make())).toEqual(before);
    const store = await RunStore.open(cut, { index: 'local' });
    await store.append({ type: 'run.closed', reason: 'stopped' });
    await store.close();
    expect((await list([cut]))[0]).toMatchObject({ state: 'stopped' });
  });

  it('are read by many at once, also while one is opened anew because it was written to', async () => {
    const busy = join(dir, 'busy'),
      s = make();
    await writeSyntheticRun(busy, { groups: 4, size: 2, running: 1 });
    const rowsOf = async (): Promise<readonly string[]> =>
        (await call<{ rows: TrajectoryRow[] }>(m.listTrajectories, { run: busy }, s)).rows.map((r) => r.rollout),
      seqOf = async (): Promise<number> => (await call<{ seq: number }>(m.getRun, { run: busy }, s)).seq;
    const ask = (): readonly [rows: Promise<(readonly string[])[]>, seqs: Promise<number[]>] => [
      Promise.all(Array.from({ length: 4 }, rowsOf)),
      Promise.all(Array.from({ length: 4 }, seqOf)),
    ];
    const [rows, seqs] = await Promise.all(ask()),
      [before] = seqs;
    expect(rows[0]!.length).toBeGreaterThan(4 * 2);
    expect(new Set(seqs)).toEqual(new Set([before]));
    const first = ask(),
      store = await RunStore.open(busy, { index: 'local' });
    const { seq } = await store.append({ type: 'log', level: 'info', message: 'written meanwhile' });
    expect(seq).toBeGreaterThanOrEqual(before!);
    const second = ask();
    await store.close();
    const last = ask();
    // A log record changes no trajectory: every answer lists the same ones, and each is true for the run before or
    // after it.
    for (const a of [first, second, last]) {
      for (const r of await a[0]) expect(r).toEqual(rows[0]);
      for (const n of await a[1]) expect([before, seq + 1]).toContain(n);
    }
    expect(await last[1]).toEqual(Array.from({ length: 4 }, () => seq + 1));
  });

  it('report why they failed', async () => {
    const failed = join(dir, 'failed'),
      store = await RunStore.open(failed, { index: 'local', create: { id: 'f' as never, createdAt: 1 } });
    await store.append({ type: 'run.opened', run: 'f' as never, resumed: false, pid: 1 });
    await store.append({
      type: 'log',
      level: 'error',
      message: 'The trainer process ended.',
      details: { kind: 'trainer.lost', remedy: 'Resume it.' },
    });
    await store.append({ type: 'run.closed', reason: 'failed' });
    await store.close();
    expect((await list([failed]))[0]).toMatchObject({
      state: 'failed',
      error: { kind: 'trainer.lost', message: 'The trainer process ended.', remedy: 'Resume it.' },
    });
  });

  it('that another process writes are shown and read along', async () => {
    const other = join(dir, 'other');
    await writeSyntheticRun(other, { groups: 1, size: 2, running: 1 });
    const store = await RunStore.open(other, { index: 'local' }),
      told: Broadcast[] = [],
      s = make();
    s.onBroadcast((b) => told.push(b));
    expect((await list([other], s))[0]).toMatchObject({ state: 'elsewhere' });
    const past = await s.head(other),
      seen: EventBatch[] = [],
      live = new Promise<void>((resolve, reject) => {
        void (async () => {
          for await (const b of s.events({ run: other, sinceSeq: past, types: ['note'] }, never)) {
            seen.push(b);
            if (b.live) resolve();
          }
        })().catch(reject);
      });
    await live;
    await store.append({ type: 'log', level: 'info', message: 'hello from elsewhere' });
    await expect
      .poll(() => seen.flatMap((b) => b.events).map((e) => (e.type === 'note' ? e.message : e.type)))
      .toEqual(['hello from elsewhere']);
    expect(
      (await call<{ rows: TrajectoryRow[] }>(m.listTrajectories, { run: other, filter: { outcome: ['running'] } }, s))
        .rows,
    ).toHaveLength(1);
    await store.close();
    // Nobody tells that a process went: it is found out, followers end, and windows are told to look again.
    await expect.poll(() => seen.at(-1)?.ended).toBe(true);
    await expect
      .poll(() => told.filter((b) => b.method === 'run/changed').map((b) => (b.params as { state: string }).state))
      .toContain('interrupted');
    expect((await list([other], s))[0]).toMatchObject({ state: 'interrupted' });
  });
});

describe('events', () => {
  it('come once each, in order, in batches of at most 200, and end with the run', async () => {
    const all = await take({}),
      seqs = all.flatMap((b) => b.events.map((e) => e.seq));
    expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
    expect(all.every((b) => b.events.length <= 200)).toBe(true);
    expect(
      all
        .filter((b) => b.events.length > 0)
        .every((b) => b.nextSeq === b.events.at(-1)!.seq + 1 || b.nextSeq > b.events.at(-1)!.seq),
    ).toBe(true);
    const of = (type: string): number => all.flatMap((b) => b.events).filter((e) => e.type === type).length;
    expect(of('started')).toBe(truth.told.length + truth.probes);
    expect(of('ended')).toBe(truth.told.length + truth.probes);
    expect(of('step')).toBe(truth.told.reduce((n, t) => n + t.steps, 0) + 2 * truth.probes);
    expect(of('trained')).toBe(truth.updates);
    expect(all.at(-1)).toEqual({ events: [], nextSeq: truth.events, live: true, ended: true });
    expect(await service.head(run)).toBe(truth.events);
  });

  it('after a reconnect bring exactly what was missed', async () => {
    const whole = (await take({})).flatMap((b) => b.events);
    for (const at of [0, 1, 57, Math.floor(truth.events / 2), truth.events - 1, truth.events]) {
      expect((await take({ sinceSeq: at })).flatMap((b) => b.events)).toEqual(whole.filter((e) => e.seq >= at));
    }
    // Cut off in the middle: what the last batch said is where the next begins.
    const some = await take({}, (b) => b.nextSeq > 300),
      rest = await take({ sinceSeq: some.at(-1)!.nextSeq });
    expect([...some, ...rest].flatMap((b) => b.events)).toEqual(whole);
  });

  it('can be of some kinds only, or of one trajectory with what its group and batch made of it', async () => {
    const some = (await take({ types: ['eval', 'note'] })).flatMap((b) => b.events.map((e) => e.type));
    expect(some).toEqual(['eval', 'note']);
    const t = truth.told.find((x) => x.trained)!,
      mine = (await take({ rollout: t.id })).flatMap((b) => b.events.map((e) => e.type));
    expect(mine).toEqual([
      'started',
      ...new Array<string>(t.steps).fill('step'),
      'ended',
      'group',
      'trained',
      'closed',
    ]);
  });

  it('wait for a slow consumer and stop when it goes', async () => {
    const stop = new AbortController(),
      it = service.events({ run, sinceSeq: 0 }, stop.signal)[Symbol.asyncIterator]();
    const first = await it.next();
    expect(first.value).toMatchObject({ live: false });
    stop.abort();
    expect((await it.next()).done).toBe(true);
  });
});

describe('trajectories', () => {
  it('are written as a file that opens without a daemon, with their frames', async () => {
    const t = truth.told.find((x) => x.trained)!,
      file = join(dir, 'out', 'mine.traj.jsonl');
    await mkdir(join(dir, 'out'), { recursive: true });
    const { text } = await call<{ text: string }>(m.exportTrajectory, { run, rollout: t.id });
    expect(await call(m.exportTrajectory, { run, rollout: t.id, file })).toEqual({ file });
    const view = await call<TrajectoryView>(m.getTrajectory, { run, rollout: t.id });
    for (const x of [text, await readFile(file, 'utf8')]) {
      const parsed = parseTrajectory(x);
      if (!parsed.ok) throw new Error(parsed.why);
      expect(parsed.skipped).toEqual([]);
      expect(JSON.parse(JSON.stringify(parsed.trajectory.steps))).toEqual(JSON.parse(JSON.stringify(view.steps)));
      const hash = parsed.trajectory.steps[0]!.frame.hash;
      if (x !== text)
        expect(existsSync(join(dir, 'out', parsed.trajectory.framesDir, hash.slice(0, 2), `${hash}.png`))).toBe(true);
    }
  });

  it('have thumbnails, made once; a frame that is gone has none', async () => {
    const view = await call<TrajectoryView>(m.getTrajectory, { run, rollout: truth.told[0]!.id }),
      { hash } = view.steps[0]!.frame,
      gone = 'f'.repeat(64);
    const ask = async (): Promise<Record<string, string>> =>
      (await call<{ paths: Record<string, string> }>(m.thumbnails, { run, hashes: [hash, gone, hash], width: 160 }))
        .paths;
    const [a, b] = await Promise.all([ask(), ask()]);
    expect(Object.keys(a)).toEqual([hash]);
    expect(b).toEqual(a);
    const small = await decodePng(await readFile(a[hash]!)),
      made = (await stat(a[hash]!)).mtimeMs;
    expect([small.width, small.height]).toEqual([160, 100]);
    expect(small.rgb.every((v) => v === 100)).toBe(true);
    expect(await ask()).toEqual(a);
    expect((await stat(a[hash]!)).mtimeMs).toBe(made);
  });
});
