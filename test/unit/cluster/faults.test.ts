import { describe, expect, it } from 'vitest';
import { createPool } from '../../../runtime/cluster/index.js';
import type { Desktop, DesktopEvent, DesktopProvider } from '../../../runtime/cluster/types.js';
import { StudioError, id, random, type DesktopId, type Frame, type Outcome } from '../../../runtime/domain/index.js';
import type { RolloutOrder } from '../../../runtime/data/types.js';
import type { Policy } from '../../../runtime/policy/types.js';
import { probeSampling } from '../../../runtime/rollout/sampling.js';
import { Scheduler } from '../../../runtime/rollout/scheduler.js';
import type { TaskEngine } from '../../../runtime/tasks/types.js';
import { EventClock } from '../../bench/schedule/eventClock.js';
import { order, task } from '../../helpers/rollout/fakes.js';

/** What may happen when a desktop is made, and what in a rollout. */
const BOOTS = ['boot fails', 'boot hangs'] as const,
  LIVES = ['reset fails', 'X server dies', 'container dies', 'call hangs', 'set-up crashes'] as const,
  FAULTS = [...BOOTS, ...LIVES];
type Fault = (typeof FAULTS)[number];
const BOOT = 3000,
  RESET = 100,
  SETUP = 400,
  STEP = 60,
  VERIFY = 50,
  /** As providers/local.ts gives up. */
  BOOT_LIMIT = 20_000,
  /** DesktopGuard's, of the run below. */
  CALL_LIMIT = 10_000;
const lost = (what: string): StudioError => new StudioError('desktop.lost', what, 'It is replaced.');

/** Desktops in virtual time, of which a share meets a fault in each rollout. */
class FaultyProvider implements DesktopProvider {
  readonly name = 'local' as const;
  readonly sameFirstFrame = false;
  readonly alive = new Set<FaultyDesktop>();
  readonly injected = new Map<Fault, number>();
  most = 0;
  made = 0;
  /** Time that desktops needed for what they did, had every fault been noticed at once. */
  needed = 0;
  readonly #clock: EventClock;
  readonly #random = random(7);
  readonly #share: number;
  constructor(clock: EventClock, share: number) {
    this.#clock = clock;
    this.#share = share;
  }
  /** The fault of the next rollout on a desktop, drawn when the desktop is made ready for it. */
  draw(of: readonly Fault[]): Fault | undefined {
    return this.#random.next() < this.#share ? this.#random.pick(of) : undefined;
  }
  count(f: Fault): void {
    this.injected.set(f, (this.injected.get(f) ?? 0) + 1);
  }
  async create(): Promise<Desktop> {
    const fault = this.draw(BOOTS);
    if (fault === 'boot fails' || fault === 'boot hangs') {
      this.count(fault);
      this.needed += fault === 'boot fails' ? BOOT : 0;
      await this.#clock.sleep(fault === 'boot fails' ? BOOT : BOOT_LIMIT);
      throw new StudioError('desktop.start', fault, 'It is tried again.');
    }
    this.needed += BOOT;
    await this.#clock.sleep(BOOT);
    const d = new FaultyDesktop(++this.made, this.#clock, this);
    d.fault = this.draw(LIVES);
    this.alive.add(d);
    this.most = Math.max(this.most, this.alive.size);
    return d;
  }
  async reset(d: Desktop): Promise<Desktop> {
    const desktop = d as FaultyDesktop;
    if (desktop.dead) throw lost('it is gone');
    this.needed += RESET;
    await this.#clock.sleep(RESET);
    desktop.fault = this.draw(LIVES);
    if (desktop.fault !== 'reset fails') return desktop;
    this.count('reset fails');
    throw lost('it did not come back after its reset');
  }
  destroy(d: Desktop): Promise<void> {
    this.alive.delete(d as FaultyDesktop);
    return Promise.resolve();
  }
  status(): never {
    throw new Error('not asked');
  }
  reap(): Promise<number> {
    return Promise.resolve(0);
  }
  dispose(): Promise<void> {
    return Promise.resolve();
  }
}

class FaultyDesktop implements Desktop {
  readonly id: DesktopId;
  readonly provider = 'local' as const;
  readonly screen = { width: 2, height: 2 };
  fault: Fault | undefined;
  dead = false;
  listeners = 0;
  readonly #said = new Set<(e: DesktopEvent) => void>();
  readonly #clock: EventClock;
  readonly #provider: FaultyProvider;
  constructor(n: number, clock: EventClock, provider: FaultyProvider) {
    this.id = id<DesktopId>(`d${n}`);
    this.#clock = clock;
    this.#provider = provider;
  }
  async work(ms: number, at: 'setup' | 'step' | 'verify'): Promise<void> {
    if (this.dead) throw lost('it is gone');
    const { fault } = this;
    if (fault === 'set-up crashes' && at === 'setup') {
      this.#met();
      throw new StudioError('task.setup', 'the application crashed', 'It is tried again.');
    }
    if (fault === 'call hangs' && at === 'step') {
      this.#met();
      return new Promise(() => undefined);
    }
    if ((fault === 'X server dies' && at === 'step') || (fault === 'container dies' && at === 'verify')) {
      this.#met();
      this.dead = true;
      for (const l of [...this.#said]) l({ type: 'lost', error: lost(fault).error });
      throw lost(fault);
    }
    this.#provider.needed += ms;
    await this.#clock.sleep(ms);
  }
  #met(): void {
    this.#provider.count(this.fault!);
    this.fault = undefined;
  }
  async observe(): Promise<Frame> {
    await this.work(0, 'setup');
    return { ...this.screen, data: Buffer.alloc(16), capturedAt: 0 };
  }
  perform(): Promise<void> {
    return this.work(STEP, 'step');
  }
  settle(): Promise<{ settled: boolean; ms: number; detector: 'exact' }> {
    return Promise.resolve({ settled: true, ms: 0, detector: 'exact' });
  }
  exec(): never {
    throw new Error('not asked');
  }
  spawn(): never {
    throw new Error('not asked');
  }
  readFile(): never {
    throw new Error('not asked');
  }
  writeFile(): never {
    throw new Error('not asked');
  }
  onEvent(l: (e: DesktopEvent) => void): () => void {
    this.#said.add(l);
    this.listeners = this.#said.size;
    return () => {
      this.#said.delete(l);
      this.listeners = this.#said.size;
    };
  }
}

const ROLLOUTS = 2500,
  DESKTOPS = 12,
  STEPS = 8,
  THINK = 900;

describe('with faults in 10 % of the rollouts', () => {
  it('throughput stays near what the same faults allow, every fault is an error that is tried again, and nothing leaks', async () => {
    const clock = new EventClock(),
      provider = new FaultyProvider(clock, 0.1),
      pool = createPool({
        provider,
        spec: { screen: { width: 2, height: 2 }, memoryMb: 1, pids: 1 },
        size: DESKTOPS,
        startParallel: 4,
        now: () => clock.now(),
        after: (ms, then) => clock.after(ms, then),
      });
    const tasks: TaskEngine = {
      check: () => [],
      setup: (_t, d) => (d as FaultyDesktop).work(SETUP, 'setup'),
      verify: async (_t, d) => {
        await (d as FaultyDesktop).work(VERIFY, 'verify');
        return { kind: 'success', reward: 1, truncated: false };
      },
    };
    const policy: Policy = {
      open: () => {
        let n = 0;
        return {
          decide: async () => {
            provider.needed += THINK;
            await clock.sleep(THINK);
            return {
              actions: [++n === STEPS ? { type: 'finished' as const } : { type: 'wait' as const, ms: 0 }],
              version: 0,
              queueMs: 0,
              computeMs: THINK,
              tokens: { logprobs: new Float32Array([0]), entropies: new Float32Array([0]), ids: new Int32Array([0]) },
            };
          },
          acted: () => undefined,
          close: () => undefined,
        };
      },
    };
    const waiting: RolloutOrder[] = Array.from({ length: ROLLOUTS }, (_, n) => order(n, { cap: STEPS }));
    const outcomes = new Map<string, Outcome['kind'][]>(),
      errors = new Map<string, number>();
    const scheduler = new Scheduler(
      {
        pool,
        clock,
        episode: {
          policy,
          tasks,
          clock,
          desktopTimeoutMs: CALL_LIMIT,
          frames: {
            put: () => Promise.resolve({ width: 2, height: 2, hash: '0' }),
            get: () => Promise.reject(new Error('not asked')),
            read: () => Promise.reject(new Error('not asked')),
          },
        },
        next: () => waiting.shift(),
        admit: () => waiting.length,
        taskOf: () => task(),
        sampling: () => ({ greedy: false, temperature: 1, seed: 0 }),
        probeSampling: probeSampling(0),
      },
      { slots: DESKTOPS },
    );
    let done = 0;
    scheduler.onEvent((e) => {
      if (e.type !== 'ended') return;
      const { outcome } = e.trajectory;
      outcomes.set(e.order.rollout, [...(outcomes.get(e.order.rollout) ?? []), outcome.kind]);
      if (outcome.kind === 'error') {
        errors.set(outcome.error.kind, (errors.get(outcome.error.kind) ?? 0) + 1);
        waiting.push(e.order);
        scheduler.wake();
      } else done++;
    });
    const t0 = clock.now();
    scheduler.start();
    await clock.run(1e9, () => done === ROLLOUTS);
    const took = clock.now() - t0,
      ratio = provider.needed / DESKTOPS / took;
    const closed = scheduler.stop({ graceMs: 0 }).then(() => pool.close());
    await clock.run(clock.now() + 1e6);
    await closed;

    for (const f of FAULTS) expect(provider.injected.get(f) ?? 0, f).toBeGreaterThan(3);
    // Each rollout succeeded once, after as many errors as it met; none was taken for a failure of the policy.
    for (const [r, kinds] of outcomes) {
      expect(kinds.at(-1), r).toBe('success');
      expect(
        kinds.slice(0, -1).every((k) => k === 'error'),
        r,
      ).toBe(true);
    }
    expect([...errors.keys()].sort()).toEqual(['desktop.lost', 'task.setup']);
    expect(ratio, 'throughput against X* of the same faults').toBeGreaterThanOrEqual(0.88);
    expect(ratio).toBeLessThanOrEqual(1);
    expect(provider.most).toBeLessThanOrEqual(DESKTOPS);
    expect(provider.alive.size).toBe(0);
    expect(clock.pending).toBe(0);
  });
});
