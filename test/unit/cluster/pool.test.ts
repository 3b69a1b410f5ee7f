import { describe, expect, it } from 'vitest';
import { createPool, type PoolOptions } from '../../../runtime/cluster/index.js';
import { quarantineNote } from '../../../runtime/cluster/quarantine.js';
import { ReferenceFrames } from '../../../runtime/cluster/referenceFrames.js';
import type { Desktop, DesktopEvent, DesktopPool, DesktopProvider, PoolEvent } from '../../../runtime/cluster/types.js';
import {
  id,
  StudioError,
  type DesktopId,
  type ErrorKind,
  type Frame,
  type RunError,
} from '../../../runtime/domain/index.js';

const SPEC = { screen: { width: 2, height: 1 }, memoryMb: 1, pids: 1 };
const frame = (v: number): Frame => ({ width: 2, height: 1, data: Buffer.alloc(8, v), capturedAt: 0 });

/** A desktop of paper: `shows` is what its next first frame looks like. */
class PaperDesktop implements Desktop {
  readonly provider = 'local' as const;
  readonly screen = SPEC.screen;
  readonly id: DesktopId;
  shows = 1;
  readonly #listeners = new Set<(e: DesktopEvent) => void>();
  constructor(n: number) {
    this.id = id<DesktopId>(`paper-${n}`);
  }
  observe(): Promise<Frame> {
    return Promise.resolve(frame(this.shows));
  }
  perform(): Promise<void> {
    return Promise.resolve();
  }
  settle(): Promise<{ settled: boolean; ms: number; detector: 'exact' }> {
    return Promise.resolve({ settled: true, ms: 0, detector: 'exact' });
  }
  exec(): never {
    throw new Error('paper');
  }
  spawn(): never {
    throw new Error('paper');
  }
  readFile(): never {
    throw new Error('paper');
  }
  writeFile(): never {
    throw new Error('paper');
  }
  onEvent(l: (e: DesktopEvent) => void): () => void {
    this.#listeners.add(l);
    return () => this.#listeners.delete(l);
  }
  die(): void {
    for (const l of [...this.#listeners])
      l({ type: 'lost', error: { kind: 'desktop.lost', message: 'died', remedy: '-' } });
  }
}

class PaperProvider implements DesktopProvider {
  readonly name = 'local' as const;
  readonly log: string[] = [];
  readonly alive = new Set<PaperDesktop>();
  failCreates = 0;
  failResets = 0;
  failsBy: ErrorKind = 'desktop.start';
  frameOf: (n: number) => number = () => 1;
  #n = 0;
  status(): never {
    throw new Error('paper');
  }
  create(): Promise<Desktop> {
    this.#n++;
    this.log.push(`create ${this.#n}`);
    if (this.failCreates > 0) {
      this.failCreates--;
      return Promise.reject(new StudioError(this.failsBy, 'paper jam', 'smooth it'));
    }
    const d = new PaperDesktop(this.#n);
    d.shows = this.frameOf(this.#n);
    this.alive.add(d);
    return Promise.resolve(d);
  }
  reset(d: Desktop): Promise<Desktop> {
    this.log.push(`reset ${d.id}`);
    if (this.failResets > 0) {
      this.failResets--;
      return Promise.reject(new StudioError('desktop.start', 'paper jam', 'smooth it'));
    }
    return Promise.resolve(d);
  }
  destroy(d: Desktop): Promise<void> {
    this.log.push(`destroy ${d.id}`);
    this.alive.delete(d as PaperDesktop);
    return Promise.resolve();
  }
  reap(): Promise<number> {
    return Promise.resolve(0);
  }
  dispose(): Promise<void> {
    return Promise.resolve();
  }
}

const signal = new AbortController().signal;
/** A pool, its provider, its events, and a way to wait for an event. */
function setUp(
  o: Partial<PoolOptions> = {},
  prepare: (p: PaperProvider) => void = () => undefined,
): {
  provider: PaperProvider;
  pool: DesktopPool;
  events: PoolEvent[];
  until: (fits: (e: PoolEvent) => boolean) => Promise<void>;
} {
  const provider = new PaperProvider();
  prepare(provider);
  const pool = createPool({ provider, spec: SPEC, size: 1, backoffMs: () => 0, ...o });
  const events: PoolEvent[] = [];
  pool.onEvent((e) => events.push(e));
  return {
    provider,
    pool,
    events,
    until: (fits) =>
      new Promise((resolve) => {
        const off = pool.onEvent((e) => {
          if (fits(e)) {
            off();
            resolve();
          }
        });
      }),
  };
}

describe('the pool', () => {
  it('lends first come, first served, and resets at once when a desktop is given back', async () => {
    const { pool, provider } = setUp();
    const order: number[] = [];
    const asks = [1, 2, 3].map(async (n) => {
      const l = await pool.lease({ signal });
      order.push(n);
      return l;
    });
    const first = await asks[0]!;
    expect(pool.status()).toMatchObject({ size: 1, waiting: 2, desktops: [{ state: 'leased', resets: 0 }] });
    first.release();
    first.release();
    (await asks[1]!).release();
    (await asks[2]!).release();
    expect(order).toEqual([1, 2, 3]);
    expect(provider.log).toEqual(['create 1', 'reset paper-1', 'reset paper-1', 'reset paper-1']);
    await pool.close();
    expect(provider.alive.size).toBe(0);
  });

  it('tells times that only go forward, whatever becomes of the clock of the machine', async () => {
    const { pool, events } = setUp(),
      wall = Date.now;
    try {
      for (const hours of [1, -2, 5]) {
        Date.now = () => wall() + hours * 3_600_000;
        (await pool.lease({ signal })).release();
      }
    } finally {
      Date.now = wall;
    }
    (await pool.lease({ signal })).release();
    await pool.close();
    const at = events.map((e) => e.at);
    expect(at.length).toBeGreaterThan(8);
    expect(at).toEqual([...at].sort((a, b) => a - b));
    expect(at.at(-1)! - at[0]!).toBeLessThan(60_000);
  });

  it('a cancelled wait takes no desktop', async () => {
    const { pool } = setUp();
    const held = await pool.lease({ signal });
    const stop = new AbortController();
    const waiting = pool.lease({ signal: stop.signal }),
      after = pool.lease({ signal });
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ kind: 'cancelled' });
    held.release();
    expect((await after).desktop.id).toBe('paper-1');
    await pool.close();
  });

  it('replaces what is given back as broken, what dies, and what cannot be reset', async () => {
    const { pool, provider, events } = setUp();
    const a = await pool.lease({ signal });
    a.release({ broken: true });
    const b = await pool.lease({ signal });
    expect(b.desktop.id).toBe('paper-2');
    (b.desktop as PaperDesktop).die();
    b.release();
    const c = await pool.lease({ signal });
    expect(c.desktop.id).toBe('paper-3');
    provider.failResets = 1;
    c.release();
    const d = await pool.lease({ signal });
    expect(d.desktop.id).toBe('paper-4');
    expect(events.filter((e) => e.type === 'replaced').map((e) => e.desktop)).toEqual([
      'paper-1',
      'paper-2',
      'paper-3',
    ]);
    expect(pool.status().desktops[0]!.replaced).toBe(3);
    expect([...provider.alive].map((x) => x.id)).toEqual(['paper-4']);
    await pool.close();
  });

  it('replaces an idle desktop that dies, before anybody asks', async () => {
    const { pool, provider, until } = setUp();
    await until((e) => e.type === 'state' && e.state === 'ready');
    const ready = until((e) => e.type === 'state' && e.state === 'ready' && e.desktop === 'paper-2');
    [...provider.alive][0]!.die();
    await ready;
    expect(provider.alive.size).toBe(1);
    await pool.close();
  });

  it('tries again with pauses, gives up after maxFailures and says why, and tries anew on the next request', async () => {
    const pauses: number[] = [];
    const { pool, provider } = setUp(
      {
        maxFailures: 3,
        backoffMs: (n) => {
          pauses.push(n);
          return 0;
        },
      },
      (p) => {
        p.failCreates = 3;
      },
    );
    await expect(pool.lease({ signal })).rejects.toMatchObject({ kind: 'desktop.start', message: 'paper jam' });
    expect(pauses).toEqual([1, 2]);
    expect((await pool.lease({ signal })).desktop.id).toBe('paper-4');
    expect(provider.log).toHaveLength(4);
    await pool.close();
  });

  it('quarantines a place after maxFailures faults in a row, keeps what it said, and tries it again later', async () => {
    const timers: { readonly ms: number; readonly then: () => void }[] = [],
      { pool, provider, events, until } = setUp({
        size: 2,
        maxFailures: 3,
        quarantineMs: 20,
        after: (ms, then) => {
          const timer = { ms, then };
          timers.push(timer);
          return () => void timers.splice(timers.indexOf(timer), 1);
        },
      });
    const fault = (n: number): { broken: true; fault: RunError } => ({
      broken: true,
      fault: { kind: 'desktop.lost', message: `fault ${n}`, remedy: '-' },
    });
    const good = await pool.lease({ signal });
    const quarantined = until((e) => e.type === 'quarantined');
    for (let n = 1; n <= 3; n++) (await pool.lease({ signal })).release(fault(n));
    await quarantined;
    const bad = pool.status().desktops.find((d) => d.quarantined);
    expect(bad).toMatchObject({ state: 'broken', replaced: 3 });
    expect(bad!.quarantined!.map((f) => f.error.message)).toEqual(['fault 1', 'fault 2', 'fault 3']);
    const told = events.filter((e) => e.type === 'quarantined');
    expect(told).toHaveLength(1);
    expect(quarantineNote(told[0]!, 1)).not.toContain('the others');
    expect(quarantineNote(told[0]!, 2)).toMatch(/the others continue/);
    expect(quarantineNote(told[0]!, 2)).toMatch(/failed 3 times in a row[^]*fault 1\n[^]*fault 2\n[^]*fault 3$/);
    // No desktop is made for it before its time.
    const made = provider.log.filter((l) => l.startsWith('create')).length;
    await new Promise((r) => setImmediate(r));
    expect(provider.log.filter((l) => l.startsWith('create'))).toHaveLength(made);
    expect(timers.map((t) => t.ms)).toEqual([20]);
    timers.shift()!.then();
    // After its time it is tried; one more fault in a row, and it rests again; a lease that ends well clears it.
    const again = until((e) => e.type === 'quarantined');
    (await pool.lease({ signal })).release(fault(4));
    await again;
    timers.shift()!.then();
    (await pool.lease({ signal })).release();
    expect(pool.status().desktops.every((d) => d.quarantined === undefined)).toBe(true);
    good.release();
    await pool.close();
  });

  it('rests for seconds where the engine or the cluster was away, and for minutes where the place is at fault', async () => {
    const pauses: number[] = [],
      { pool, provider, events, until } = setUp(
        {
          maxFailures: 2,
          backoffMs: () => 1,
          after: (ms, then) => {
            pauses.push(ms);
            if (ms === 1) setImmediate(then);
            return () => undefined;
          },
        },
        (p) => {
          p.failCreates = 2;
          p.failsBy = 'desktop.unavailable';
        },
      );
    await until((e) => e.type === 'quarantined');
    expect(pauses).toEqual([1, 15_000]);
    expect(
      quarantineNote(
        events.find((e) => e.type === 'quarantined')!,
        2,
      ),
    ).toContain('paused for some seconds');
    provider.failCreates = 1;
    provider.failsBy = 'desktop.start';
    await expect(pool.lease({ signal })).rejects.toMatchObject({ message: 'paper jam' });
    expect(pauses.slice(2)).toEqual([5 * 60_000]);
    await pool.close();
  });

  it('what programs did to their desktop does not count against its place', async () => {
    const { pool, events } = setUp({ maxFailures: 2 });
    for (let n = 0; n < 6; n++) (await pool.lease({ signal })).release({ broken: true });
    expect(events.some((e) => e.type === 'quarantined')).toBe(false);
    await pool.close();
  });

  it('replaces a desktop whose first frame differs from the others', async () => {
    const { pool, provider } = setUp({ size: 3, startParallel: 1 }, (p) => {
      p.frameOf = (n) => (n === 2 ? 9 : 1);
    });
    const leases = [await pool.lease({ signal }), await pool.lease({ signal }), await pool.lease({ signal })];
    expect(leases.map((l) => l.desktop.id).sort()).toEqual(['paper-1', 'paper-3', 'paper-4']);
    expect(provider.log).toContain('destroy paper-2');
    await pool.close();
  });

  it('takes a new desktop after hardResetEvery resets in place', async () => {
    const { pool, provider } = setUp({ hardResetEvery: 3 });
    for (let i = 0; i < 7; i++) (await pool.lease({ signal })).release();
    await pool.lease({ signal });
    expect(provider.log.filter((l) => !l.startsWith('destroy'))).toEqual([
      'create 1',
      'reset paper-1',
      'reset paper-1',
      'create 2',
      'reset paper-2',
      'reset paper-2',
      'create 3',
      'reset paper-3',
    ]);
    await pool.close();
  });

  it('grows at once and shrinks as leases end', async () => {
    const { pool, provider } = setUp();
    const a = await pool.lease({ signal });
    await pool.resize(3);
    const [b, c] = [await pool.lease({ signal }), await pool.lease({ signal })];
    await pool.resize(1);
    expect(provider.alive.size).toBe(3);
    a.release();
    b.release();
    const d = pool.lease({ signal });
    c.release();
    await d;
    expect(provider.alive.size).toBe(1);
    expect(pool.status().desktops).toHaveLength(1);
    await pool.close();
  });

  it('spares are kept beyond the leases, never lent at the same time', async () => {
    const { pool, provider, until } = setUp({ size: 1, spares: 1 });
    await until((e) => e.type === 'state' && e.state === 'ready' && provider.alive.size === 2);
    const a = await pool.lease({ signal });
    let second = false;
    const b = pool.lease({ signal }).then((l) => {
      second = true;
      return l;
    });
    await new Promise(setImmediate);
    expect(second).toBe(false);
    a.release();
    expect((await b).desktop.id).not.toBe(a.desktop.id);
    await pool.close();
  });

  it('close refuses who waits and takes down leased desktops', async () => {
    const { pool, provider } = setUp();
    const a = await pool.lease({ signal });
    const waiting = pool.lease({ signal });
    const closed = pool.close();
    await expect(waiting).rejects.toMatchObject({ kind: 'cancelled' });
    await closed;
    a.release();
    expect(provider.alive.size).toBe(0);
    await expect(pool.lease({ signal })).rejects.toMatchObject({ kind: 'cancelled' });
    await expect(pool.resize(2)).rejects.toMatchObject({ kind: 'cancelled' });
  });

  it('refuses sizes that make no sense', () => {
    for (const size of [-1, 1.5, 5000]) expect(() => setUp({ size })).toThrow(/cannot have/);
  });
});

describe('ReferenceFrames', () => {
  it('takes the first frame that most desktops have as the reference', () => {
    const r = new ReferenceFrames();
    expect(r.matches(frame(9))).toBe(true); // the first, though it is the odd one
    expect(r.matches(frame(1))).toBe(false);
    expect(r.accept(frame(1))).toBe(false);
    expect(r.accept(frame(1))).toBe(true);
    expect(r.matches(frame(1))).toBe(true);
    expect(r.matches(frame(9))).toBe(false);
  });
});
