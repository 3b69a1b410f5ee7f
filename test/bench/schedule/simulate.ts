import { performance } from 'node:perf_hooks';
import { id } from '../../../runtime/domain/index.js';
import type { GroupId, ReplicaId, RolloutId } from '../../../runtime/domain/index.js';
import { parseRunFile } from '../../../runtime/config/index.js';
import type { DataConfig } from '../../../runtime/data/config.js';
import { DataManager } from '../../../runtime/data/dataManager.js';
import type { DataStats } from '../../../runtime/data/dataStats.js';
import { dataConfig } from '../../../runtime/data/fromConfig.js';
import type { WeightsRef } from '../../../runtime/policy/types.js';
import { ModelPool } from '../../../runtime/rollout/modelPool.js';
import type { Regime } from '../../../runtime/rollout/regime.js';
import { regimeGate } from '../../../runtime/rollout/regime.js';
import { probeSampling, trainingSampling } from '../../../runtime/rollout/sampling.js';
import { Scheduler } from '../../../runtime/rollout/scheduler.js';
import { OrderQueue, type OrderSource } from '../../../runtime/run/orders.js';
import { updateLoop } from '../../../runtime/run/updateLoop.js';
import { EventClock } from './eventClock.js';
import type { Measured } from './measure.js';
import { Measure } from './measure.js';
import type { Trace, Workload } from './workload.js';
import { Traces, tasksOf } from './workload.js';
import { SimDesktops, SimReplica, simFrames, simPolicy, simTasks, taskFor, taskIdOf } from './world.js';

/** How a run is scheduled. Everything else, curation included, is the same. */
export interface Arrangement {
  readonly name: string;
  readonly label: string;
  readonly regime: Regime;
  /** `relaunch`: the published way, engines are killed and started again, half of them at a time. */
  readonly sync: 'replica' | 'global' | 'relaunch';
  /** Batches as large as the desktops hold at once, instead of one update's worth. */
  readonly fill?: boolean;
  /**
   * The published batch rule: no admission bound, rollouts older than the two newest versions are left out; tasks in
   * shuffled passes.
   */
  readonly published?: boolean;
  readonly data?: (c: DataConfig) => DataConfig;
}

export interface Simulation {
  readonly measured: Measured;
  readonly stats: DataStats;
  /** Virtual hours that were measured. */
  readonly hours: number;
  readonly lengths: {
    readonly resolved: readonly number[];
    readonly candidates: readonly number[];
    readonly trained: readonly number[];
  };
  /** Cost of simulating: timers fired, CPU and wall seconds. */
  readonly cost: { readonly timers: number; readonly cpu: number; readonly wall: number };
}

/** Data manager options of a workload: those of a run file that says nothing but the workload's sizes. */
export function dataConfigOf(w: Workload, a: Arrangement, seed: number): DataConfig {
  const c = dataConfig(
    parseRunFile({
      seed,
      rollout: { maxSteps: w.cap },
      trainer: { batchGroups: w.batchGroups },
      curation: { dynamicRollouts: { max: w.rollouts }, ...(w.eta === undefined ? {} : { staleness: { eta: w.eta } }) },
    }),
  );
  const published: DataConfig = {
    ...c,
    staleness: { enabled: true, eta: 1_000_000, perUpdate: w.batchGroups * w.rollouts, maxLag: 1 },
    planner: { ...c.planner, planner: 'shuffle' },
  };
  return a.data ? a.data(a.published ? published : c) : a.published ? published : c;
}

const NEVER_MS = 1e9;
const weightsOf = (version: number): WeightsRef => ({ version, path: '', sha256: '' });

/**
 * The same rollouts whatever the arrangement: group after group in shuffled passes, all of one size and with one cap,
 * and nothing of an outcome decides what comes next.
 */
const fixedList = (c: DataConfig): DataConfig => ({
  ...c,
  dynamicRollouts: { ...c.dynamicRollouts, enabled: false },
  dynamicLength: { ...c.dynamicLength, enabled: false },
  pool: { ...c.pool, enabled: false },
  planner: { ...c.planner, planner: 'shuffle', pilot: 0 },
});
/** Orders of the first `groups` groups; `over`: all of them were rolled out and curated. */
function firstGroups(data: DataManager, groups: number): OrderSource & { over(): boolean } {
  const opened = new Set<GroupId>();
  return {
    async nextOrder(i) {
      const order = await data.nextOrder({ ...i, onlyOpen: i.onlyOpen === true || opened.size >= groups });
      if (order) opened.add(order.group);
      return order;
    },
    capacity: (i) => data.capacity(i),
    retire: (rollout, reason) => data.retire(rollout, reason),
    onChange: (listener) => data.onChange(listener),
    isOpen: (group) => data.isOpen(group),
    over: () => opened.size >= groups && [...opened].every((g) => !data.isOpen(g)),
  };
}
/** Virtual hours after which a list that has not ended never will. */
const LIST_HOURS = 1000;

/**
 * One run of the production scheduler, order queue, data manager, update loop and model pool in virtual time. Same
 * arguments, same result. `groups`: from a cold start until so many groups, the same in every arrangement, have been
 * rolled out and trained.
 */
export async function simulate(
  w: Workload,
  a: Arrangement,
  seed: number,
  o: { readonly groups?: number } = {},
): Promise<Simulation> {
  const wall0 = performance.now(),
    cpu0 = process.cpuUsage();
  const config = dataConfigOf(w, a, seed),
    clock = new EventClock(),
    measure = new Measure(clock, w, config.staleness.eta);
  const tasks = tasksOf(w),
    traces = new Traces(w, tasks, seed),
    running = new Map<RolloutId, Trace>();
  const data = DataManager.volatile(
    {
      config: o.groups === undefined ? config : fixedList(config),
      families: tasks.map((t) => ({ id: t.id, seeds: [0] })),
      taskOf: taskIdOf,
    },
    measure,
  );
  let version = 0,
    started = false;

  const engines = new Map<ReplicaId, SimReplica>();
  const models = await ModelPool.start({
    replicas: Array.from({ length: w.replicas }, (_, i) => id<ReplicaId>(`replica-${i + 1}`)),
    weights: weightsOf(0),
    clock,
    depth: w.depth,
    callTimeoutMs: NEVER_MS,
    publishMode: a.sync === 'global' ? 'global' : 'per-replica',
    restart: { baseMs: 0, maxMs: 0, attempts: 1e9 },
    async factory(rid, weights) {
      if (started) await clock.sleep(w.relaunch * 1000);
      const r = new SimReplica(rid, a.sync === 'relaunch' ? version : weights.version, clock, w, (calls) =>
        measure.killed(calls),
      );
      engines.set(rid, r);
      return r;
    },
  });
  started = true;
  models.onEvent((e) => measure.onModels(e));
  /** Half of the engines at a time are killed and come up with the new weights. */
  const relaunch = async (): Promise<void> => {
    const ids = [...engines.keys()],
      half = Math.ceil(ids.length / 2);
    for (const part of [ids.slice(0, half), ids.slice(half)]) {
      const up = new Promise<void>((resolve) => {
        const waiting = new Set(part),
          off = models.onEvent((e) => {
            if (e.type === 'phase' && e.phase === 'admitting' && waiting.delete(e.replica) && waiting.size === 0) {
              off();
              resolve();
            }
          });
      });
      for (const rid of part) engines.get(rid)!.kill();
      await up;
    }
  };

  const behavior = (): number => (a.sync === 'relaunch' ? version : models.oldest);
  const gate = regimeGate({
    regime: a.regime,
    slots: w.desktops,
    groups: a.fill
      ? Math.max(
          w.batchGroups,
          Math.min(Math.floor(w.desktops / w.rollouts), (config.staleness.eta + 1) * w.batchGroups),
        )
      : w.batchGroups,
  });
  const list = o.groups === undefined ? undefined : firstGroups(data, o.groups);
  const orders = new OrderQueue(list ?? data, {
    limit: w.desktops + 8,
    version: () => version,
    behavior,
    gate,
    onReady: () => scheduler.wake(),
    onFault: fail,
  });
  const scheduler: Scheduler = new Scheduler(
    {
      pool: new SimDesktops(clock, w, (d, busy, broken) => measure.onReset(d, busy, broken)),
      clock,
      next: () => orders.take(),
      admit: () => orders.ready,
      taskOf: (o) => {
        const trace = traces.next(o.family);
        running.set(o.rollout, trace);
        return taskFor(o, trace);
      },
      sampling: trainingSampling(seed, 1),
      probeSampling: probeSampling(seed),
      episode: {
        policy: simPolicy(models, (r) => running.get(r)!),
        tasks: simTasks(clock, w),
        frames: simFrames,
        clock,
        desktopTimeoutMs: NEVER_MS,
      },
    },
    { slots: w.desktops },
  );
  let fault: unknown;
  function fail(e: unknown): void {
    fault ??= e;
  }
  scheduler.onEvent((e) => {
    measure.onScheduler(e);
    if (e.type === 'started') data.started(e.order.rollout, behavior(), e.desktop).catch(fail);
    else if (e.type === 'step') data.recordStep(e.rollout, e.step, { desktop: e.desktop }).catch(fail);
    else if (e.type === 'ended') {
      running.delete(e.trajectory.id);
      data.record(e.trajectory).catch(fail);
    }
  });

  const stop = new AbortController();
  updateLoop<number>(
    {
      data,
      gate,
      // What is left of a list at its end is trained too, in one update.
      get batchGroups() {
        return list?.over() && a.regime !== 'batch'
          ? Math.max(1, Math.min(w.batchGroups, data.stats().groups.ready))
          : w.batchGroups;
      },
      version: () => version,
      behavior,
      onGenerate: () => orders.wake(),
      async train(batch) {
        const ms = (w.trainUpdate + w.trainAction * batch.steps) * 1000;
        measure.batch(batch, version);
        measure.training(true);
        await clock.sleep(ms);
        measure.training(false);
        await data.trained(batch.id, ++version);
        scheduler.wake();
        orders.fill();
        return version;
      },
      async publish(v) {
        if (a.sync === 'relaunch') await relaunch();
        else await models.publish(weightsOf(v));
      },
    },
    stop.signal,
  ).catch(fail);

  scheduler.start();
  orders.fill();
  if (list) {
    measure.begin(models);
    await clock.run(
      LIST_HOURS * 3.6e6,
      () => fault !== undefined || (list.over() && data.stats().ledger.inFlight === 0),
    );
  } else {
    await clock.run(w.warmup * 3.6e6, () => fault !== undefined);
    measure.begin(models);
    await clock.run((w.warmup + w.hours) * 3.6e6, () => fault !== undefined);
  }
  stop.abort();
  if (fault) throw fault;
  const cpu = process.cpuUsage(cpu0);
  return {
    measured: measure.end(models),
    stats: data.stats(),
    hours: (clock.now() - (list ? 0 : w.warmup * 3.6e6)) / 3.6e6,
    lengths: measure.lengths,
    cost: { timers: clock.fired, cpu: (cpu.user + cpu.system) / 1e6, wall: (performance.now() - wall0) / 1000 },
  };
}
