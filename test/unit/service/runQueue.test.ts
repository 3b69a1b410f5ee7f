import { mkdir, mkdtemp, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StudioError } from '../../../runtime/domain/index.js';
import type { Patience } from '../../../runtime/concurrency/pause.js';
import type { QueuedRun } from '../../../runtime/protocol/types.js';
import { RunQueue } from '../../../runtime/service/runQueue.js';
import type { Studio } from '../../../runtime/service/studio.js';
import {
  added,
  changed,
  emptyQueue,
  moved,
  nextOf,
  recovered,
  removed,
  viewOf,
  type Entry,
  type QueueState,
} from '../../../runtime/service/queueState.js';

const entry = (id: string, state: Entry['state'] = 'waiting', run?: string): Entry => ({
  id,
  name: id,
  state,
  start: { text: '{}', base: '/' },
  ...(run === undefined ? {} : { run }),
});
const queue = (...items: readonly Entry[]): QueueState => ({ items, paused: false });
const ids = (q: QueueState): string => q.items.map((e) => e.id).join('');

describe('the queue of runs', () => {
  it('begins one after another, in order, and none while it is paused', () => {
    let q = added(emptyQueue, [entry('a'), entry('b')]);
    expect(nextOf(q)?.id).toBe('a');
    expect(nextOf({ ...q, paused: true })).toBeUndefined();
    q = changed(q, 'a', { state: 'running', run: '/runs/a' });
    expect(nextOf(q)).toBeUndefined();
    q = changed(q, 'a', { state: 'done' });
    expect(nextOf(q)?.id).toBe('b');
    q = changed(q, 'b', { state: 'failed', error: 'No desktops.' });
    expect(nextOf(q)).toBeUndefined();
    expect(viewOf(q).items[1]).toEqual({ id: 'b', name: 'b', state: 'failed', error: 'No desktops.' });
  });
  it('is reordered by hand among what waits; what runs is not taken out', () => {
    const q = queue(entry('r', 'running'), entry('a'), entry('b'), entry('c'));
    expect(ids(moved(q, 'c', -2))).toBe('rcab');
    expect(ids(moved(q, 'a', 1))).toBe('rbac');
    expect(ids(moved(q, 'a', -9))).toBe('rabc');
    expect(ids(moved(q, 'r', 1))).toBe('rabc');
    expect(ids(removed(q, 'b'))).toBe('rac');
    expect(ids(removed(q, 'r'))).toBe('rabc');
  });
  it('after a crash the active run goes on, one that never began waits again in its place, another one is over', () => {
    const q = queue(entry('r', 'running', '/runs/r'), entry('a'));
    expect(recovered(q, () => 'active')).toEqual(q);
    const again = recovered(q, () => 'never began');
    expect(nextOf(again)).toEqual(entry('r'));
    expect(nextOf(recovered(q, () => 'over'))?.id).toBe('a');
    expect(nextOf(recovered(queue(entry('r', 'running')), () => 'over'))?.id).toBe('r');
  });
  it('whatever is done to it, nothing that waits is lost, at most one runs, and what is over is bounded', () => {
    const step = fc.oneof(
      fc.constant('add' as const),
      fc.constant('next' as const),
      fc.constant('end' as const),
      fc.constant('crash' as const),
      fc.record({ move: fc.nat(5), by: fc.integer({ min: -3, max: 3 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        let q = emptyQueue,
          made = 0,
          ended = 0;
        for (const s of steps) {
          if (s === 'add') q = added(q, [entry(`e${made++}`)]);
          else if (s === 'next') {
            const e = nextOf(q);
            if (e) q = changed(q, e.id, { state: 'running', run: `/runs/${e.id}` });
          } else if (s === 'end') {
            const e = q.items.find((x) => x.state === 'running');
            if (e) ended++;
            if (e) q = changed(q, e.id, { state: 'done' });
          } else if (s === 'crash') q = recovered(q, () => 'never began');
          else q = moved(q, q.items[s.move]?.id ?? '', s.by);
          expect(q.items.filter((e) => e.state === 'running').length).toBeLessThanOrEqual(1);
          expect(q.items.filter((e) => e.state === 'waiting' || e.state === 'running').length).toBe(made - ended);
          expect(q.items.filter((e) => e.state === 'done').length).toBeLessThanOrEqual(20);
        }
      }),
    );
  });
});

/** As much of a studio as the queue asks for: one run at a time, begun and ended by the test. */
class Desk {
  session: { readonly run: string } | undefined;
  readonly begun: string[] = [];
  readonly tried: string[] = [];
  readonly told: string[] = [];
  readonly alerts = { send: (a: { readonly message: string }): void => void this.told.push(a.message) };
  readonly stop = new AbortController();
  refuse: Error | undefined;
  /** Of desktops, each time somebody asks for them. */
  away: Error | undefined;
  asked = 0;
  looking: Promise<void> = Promise.resolve();
  async checkDesktops(): Promise<void> {
    this.asked++;
    await this.looking;
    if (this.away) throw this.away;
  }
  settled = 0;
  settle(): void {
    if (!this.busy) this.settled++;
  }
  #listeners: ((s: unknown) => void)[] = [];
  get closing(): AbortSignal {
    return this.stop.signal;
  }
  /** An evaluation or another long job is under way. */
  works = false;
  /** A newer daemon waits for the end of this one. */
  draining = false;
  #idle: (() => void)[] = [];
  get busy(): boolean {
    return this.session !== undefined || this.works;
  }
  onIdle(l: () => void): void {
    this.#idle.push(l);
  }
  idle(): void {
    this.works = false;
    for (const l of this.#idle) l();
  }
  onSession(l: (s: unknown) => void): void {
    this.#listeners.push(l);
  }
  broadcast(b: { readonly method: string }): void {
    this.told.push(b.method);
  }
  readonly logged: string[] = [];
  log(_level: string, message: string): void {
    this.logged.push(message);
  }
  begin(plan: { readonly dir: string; readonly config: { readonly seed: number } }): Promise<void> {
    this.tried.push(String(plan.config.seed));
    if (this.refuse) return Promise.reject(this.refuse);
    this.session = { run: plan.dir };
    this.begun.push(String(plan.config.seed));
    return Promise.resolve();
  }
  end(): void {
    this.session = undefined;
    for (const l of this.#listeners) l(undefined);
  }
}
const withQueue = async (
  work: (
    make: (d: Desk, patience?: Patience) => RunQueue,
    start: (seed: number) => QueuedRun,
    dir: string,
  ) => Promise<void>,
): Promise<void> => {
  const dir = await mkdtemp(join(tmpdir(), 'dart-queue-'));
  try {
    await work(
      (d, patience) => new RunQueue(d as unknown as Studio, dir, patience),
      (seed) => ({ text: '{"preset":"quickstart"}', base: dir, seed }),
      dir,
    );
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
};
/** A daemon that was killed in the first of two queued runs. */
async function killedInOne(make: (d: Desk) => RunQueue, start: (seed: number) => QueuedRun): Promise<Desk> {
  const killed = new Desk();
  await (await opened(make(killed))).add([start(1), start(2)]);
  await expect.poll(() => killed.begun).toEqual(['1']);
  return killed;
}
/** The queue of a daemon that had nothing to resume. */
const opened = async (q: RunQueue): Promise<RunQueue> => {
  await q.recover();
  return q;
};
const states = (q: RunQueue): string => q.view.items.map((i) => `${i.seed} ${i.state}`).join(', ');

describe('the queue of a daemon', () => {
  it('that cannot be read is kept under another name before the next one is written, and said where', async () =>
    withQueue(async (make, start, dir) => {
      const file = join(dir, 'queue.json'),
        kept = async (): Promise<string[]> =>
          (await readdir(dir)).filter((n) => /^queue\.unreadable-\d+\.json$/.test(n));
      // No file at all is no fault.
      const none = new Desk();
      await opened(make(none));
      expect([none.logged, await kept()]).toEqual([[], []]);
      // EISDIR stands for a disk that fails.
      await rm(file);
      await mkdir(file);
      const d = new Desk(),
        q = await opened(make(d));
      const [aside] = await kept();
      expect(d.logged).toEqual([expect.stringContaining(aside!)]);
      await q.add([start(1)]);
      expect(await readFile(file, 'utf8')).toContain('quickstart');
      await rmdir(join(dir, aside!));
    }));
  it('keeps the runs that it understands, and a copy of the rest', async () =>
    withQueue(async (make, start, dir) => {
      const file = join(dir, 'queue.json'),
        first = new Desk(),
        q = await opened(make(first));
      await q.change((s) => ({ ...s, paused: true }));
      await q.add([start(1), start(2)]);
      const there = JSON.parse(await readFile(file, 'utf8')) as { items: object[] },
        newer = JSON.stringify({ ...there, items: [there.items[0], { from: 'a newer version' }, there.items[1]] });
      await writeFile(file, newer);
      const d = new Desk(),
        again = await opened(make(d));
      expect(states(again)).toBe('1 waiting, 2 waiting');
      const [aside] = (await readdir(dir)).filter((n) => n.startsWith('queue.unreadable-'));
      expect(await readFile(join(dir, aside!), 'utf8')).toBe(newer);
      expect(d.logged).toEqual([expect.stringContaining(aside!)]);
    }));
  it('goes from one run to the next without anybody, and past one that cannot be started', async () =>
    withQueue(async (make, start) => {
      const d = new Desk(),
        q = await opened(make(d));
      await q.add([start(1), start(2), start(3)]);
      await expect.poll(() => d.begun).toEqual(['1']);
      d.refuse = new StudioError('store.io', 'No folder.', 'Make one.');
      d.end();
      await expect.poll(() => states(q)).toBe('1 done, 2 failed, 3 failed');
      d.refuse = undefined;
      await q.add([start(4)]);
      await expect.poll(() => d.begun).toEqual(['1', '4']);
      expect(q.view.items[1]).toMatchObject({ error: 'No folder. Make one.' });
      expect(d.told).toContain('queue/changed');
      // Nobody may be looking: each that could not be started is an alert.
      expect(d.told.filter((x) => x === 'could not be started: No folder. Make one.')).toHaveLength(2);
    }));
  it('keeps runs that no desktops are there for, lets others pass, and tries again until there are some', async () =>
    withQueue(async (make, start) => {
      const d = new Desk(),
        q = await opened(make(d, { baseMs: 1, maxMs: 1, attempts: Infinity }));
      d.away = new StudioError('desktop.unavailable', 'No desktops.', 'Start Docker.');
      await q.add([start(1), start(2)]);
      await expect.poll(() => d.asked).toBeGreaterThan(3);
      // A run of the queue that waits is none that starts, for whoever wants to start another or take it out.
      expect(d.tried).toEqual([]);
      // Nobody needs to look until then; a newer daemon goes on by itself, and hears of it.
      expect(q.busy).toBe(true);
      d.settled = 0;
      d.draining = true;
      await expect.poll(() => [q.busy, d.settled > 0]).toEqual([false, true]);
      expect(states(q)).toBe('1 waiting, 2 waiting');
      for (const i of q.view.items) expect(i).toMatchObject({ error: 'No desktops. Start Docker.' });
      expect(q.view.items[1]).not.toHaveProperty('run');
      d.draining = false;
      d.away = undefined;
      await q.change((s) => s);
      await expect.poll(() => d.begun).toEqual(['1']);
      for (const i of q.view.items) expect(i).not.toHaveProperty('error');
      d.end();
      await expect.poll(() => d.begun).toEqual(['1', '2']);
      // However often it was tried, and however many wait for the same.
      expect(d.told.filter((x) => x.startsWith('waits for desktops'))).toHaveLength(1);
    }));
  it('says that a run which waited for desktops cannot be started; others need other desktops', async () =>
    withQueue(async (make, start) => {
      const d = new Desk(),
        q = await opened(make(d));
      d.away = new StudioError('desktop.unavailable', 'No desktops.', 'Start Docker.');
      await q.add([start(1), { ...start(2), desktops: 3 }]);
      await expect.poll(() => d.asked).toBe(2);
      d.away = undefined;
      d.refuse = new StudioError('store.io', 'No folder.', 'Make one.');
      await q.change((s) => s);
      await expect.poll(() => states(q)).toBe('1 failed, 2 failed');
      expect(d.told.filter((x) => x.startsWith('waits for'))).toHaveLength(2);
      expect(d.told.filter((x) => x.startsWith('could not be started'))).toHaveLength(2);
    }));
  it('does not begin what was taken out while it was looked for desktops', async () =>
    withQueue(async (make, start) => {
      const d = new Desk(),
        q = await opened(make(d));
      let found = (): void => undefined;
      d.looking = new Promise<void>((r) => (found = r));
      await q.add([start(1), start(2)]);
      await expect.poll(() => d.asked).toBe(1);
      await q.change((s) => removed(s, s.items[0]!.id));
      found();
      await expect.poll(() => d.begun).toEqual(['2']);
      expect(states(q)).toBe('2 running');
    }));
  it('tries runs that wait for desktops at once when somebody changes the queue', async () =>
    withQueue(async (make, start) => {
      const d = new Desk(),
        q = await opened(make(d));
      d.away = new StudioError('desktop.unavailable', 'No desktops.', 'Start Docker.');
      await q.add([start(1)]);
      await expect.poll(() => [d.asked, q.view.items[0]?.error !== undefined]).toEqual([1, true]);
      d.away = undefined;
      await q.add([start(2)]);
      await expect.poll(() => d.begun).toEqual(['1']);
      expect(states(q)).toBe('1 running, 2 waiting');
      d.stop.abort();
    }));
  it('goes on when the long job is over that was under way at the end of a run', async () =>
    withQueue(async (make, start) => {
      const d = new Desk(),
        q = await opened(make(d));
      await q.add([start(1), start(2)]);
      await expect.poll(() => d.begun).toEqual(['1']);
      d.works = true;
      d.end();
      await expect.poll(() => states(q)).toBe('1 done, 2 waiting');
      d.idle();
      await expect.poll(() => d.begun).toEqual(['1', '2']);
    }));
  it('a run file that is wrong is said at once, and queues nothing', async () =>
    withQueue(async (make, start) => {
      const q = make(new Desk());
      await expect(q.add([start(1), { text: '{"preset":"nothing"}', base: '/' }])).rejects.toMatchObject({
        kind: 'config.invalid',
      });
      expect(q.view.items).toEqual([]);
    }));
  it('a daemon that was killed leaves it to the next: the active run goes on, then the rest', async () =>
    withQueue(async (make, start) => {
      const killed = await killedInOne(make, start);
      const d = new Desk(),
        q = make(d);
      // What was active is resumed before the queue is.
      d.session = killed.session;
      await q.recover();
      expect(states(q)).toBe('1 running, 2 waiting');
      expect(d.begun).toEqual([]);
      d.end();
      await expect.poll(() => d.begun).toEqual(['2']);
      expect(states(q)).toBe('1 done, 2 running');
    }));
  it('begins nothing before what was active is resumed, whatever comes meanwhile', async () =>
    withQueue(async (make, start) => {
      const killed = await killedInOne(make, start);
      // Docker starts later than the daemon: tries to resume the run fail, and after each the daemon is idle.
      const d = new Desk(),
        q = make(d);
      await q.list();
      d.idle();
      await q.add([start(3)]);
      d.idle();
      expect(states(q)).toBe('1 running, 2 waiting, 3 waiting');
      // A run that a person began meanwhile is none of the queue.
      d.session = { run: '/by/hand' };
      d.end();
      expect(states(q)).toBe('1 running, 2 waiting, 3 waiting');
      d.session = killed.session;
      await q.recover();
      expect([states(q), d.begun]).toEqual(['1 running, 2 waiting, 3 waiting', []]);
      d.end();
      await expect.poll(() => d.begun).toEqual(['2']);
    }));
  it('goes on where the run that was resumed ends while the queue is still written', async () =>
    withQueue(async (make, start) => {
      const killed = await killedInOne(make, start);
      const d = new Desk(),
        q = make(d);
      await q.list();
      d.session = killed.session;
      const recovering = q.recover();
      await Promise.resolve();
      await Promise.resolve();
      d.end();
      await recovering;
      await expect.poll(() => d.begun).toEqual(['2']);
      expect(states(q)).toBe('1 done, 2 running');
    }));
  it('begins nothing where a newer daemon waits, which goes on with it', async () =>
    withQueue(async (make, start) => {
      const old = new Desk(),
        q = await opened(make(old));
      await q.add([start(1), start(2)]);
      await expect.poll(() => old.begun).toEqual(['1']);
      old.draining = true;
      old.end();
      await q.add([start(3)]);
      old.idle();
      expect([states(q), old.begun]).toEqual(['1 done, 2 waiting, 3 waiting', ['1']]);
      const d = new Desk();
      await opened(make(d));
      await expect.poll(() => d.begun).toEqual(['2']);
    }));
  it('a run that had no folder yet is begun again; a runtime that stops begins no other', async () =>
    withQueue(async (make, start) => {
      await killedInOne(make, start);
      const d = new Desk(),
        q = make(d);
      await q.recover();
      await expect.poll(() => d.begun).toEqual(['1']);
      d.stop.abort();
      d.end();
      expect(states(q)).toBe('1 running, 2 waiting');
      expect(d.begun).toEqual(['1']);
    }));
  it('paused, it begins none; a run that a person began first is waited for', async () =>
    withQueue(async (make, start) => {
      const d = new Desk(),
        q = await opened(make(d));
      await q.change((s) => ({ ...s, paused: true }));
      await q.add([start(1)]);
      expect(d.begun).toEqual([]);
      d.session = { run: '/by/hand' };
      await q.change((s) => ({ ...s, paused: false }));
      expect(d.begun).toEqual([]);
      d.end();
      await expect.poll(() => d.begun).toEqual(['1']);
    }));
});
