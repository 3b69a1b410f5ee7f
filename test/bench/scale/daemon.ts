/**
 * The daemon's side: what a training run with a remote model is made of (TrainingRun), on synthetic desktops: pool,
 * registry, scheduler, episodes, ledger, journal, frames, index, meters, and the listeners of one window.
 */
import { stat, readdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { join, resolve } from 'node:path';
import { AgentClient } from '../../../runtime/cluster/agentClient.js';
import { createPool } from '../../../runtime/cluster/pool.js';
import { SandboxDesktop } from '../../../runtime/cluster/drivers/desktop.js';
import { Relay, screenOver } from '../../../runtime/cluster/drivers/portable.js';
import { agentSettler } from '../../../runtime/cluster/drivers/portableSettle.js';
import { X11Client } from '../../../runtime/cluster/drivers/x11Client.js';
import type { DesktopProvider, DesktopSpec } from '../../../runtime/cluster/types.js';
import { parseRunFile, type RunConfig } from '../../../runtime/config/index.js';
import { DataManager } from '../../../runtime/data/dataManager.js';
import { dataConfig } from '../../../runtime/data/fromConfig.js';
import type { FrameStats } from '../../../runtime/data/store/frames.js';
import { id, type DesktopId, type RunId, type TaskId, type FamilyId } from '../../../runtime/domain/index.js';
import { ignoreFailure } from '../../../runtime/concurrency/failures.js';
import { ModelThread } from '../../../runtime/policy/remote/modelThread.js';
import { createOpenAiPolicy } from '../../../runtime/policy/remote/openai.js';
import { systemClock } from '../../../runtime/rollout/clock.js';
import { DesktopRegistry } from '../../../runtime/rollout/desktopRegistry.js';
import { probeSampling, trainingSampling } from '../../../runtime/rollout/sampling.js';
import { Scheduler } from '../../../runtime/rollout/scheduler.js';
import { RunBudget } from '../../../runtime/run/budget.js';
import { keptScreens } from '../../../runtime/run/backends/remoteParts.js';
import type { Engine } from '../../../runtime/run/engine.js';
import { RunMonitor } from '../../../runtime/run/monitor.js';
import { OrderQueue } from '../../../runtime/run/orders.js';
import { RolloutRecorder } from '../../../runtime/run/recorder.js';
import { RunLog } from '../../../runtime/run/runLog.js';
import { RunState } from '../../../runtime/run/runState.js';
import { Successes } from '../../../runtime/run/successes.js';
import type { Task, TaskEngine } from '../../../runtime/tasks/types.js';
import { watchAsWindow } from './window.js';
import { usedFromNow, type DaemonRequest, type DaemonResult } from './wire.js';

/** As many as OSWorld has of the tasks that DART trains on. */
const FAMILIES = 203;
/** Share of the desktops from which on they count as started, and the longest time until then. */
const AT_WORK = 0.98,
  START_MS = 300_000;
const MB = 1 << 20;

export async function runDaemon(
  r: DaemonRequest,
  window: (at: 'begins' | 'ended') => Promise<void>,
): Promise<DaemonResult> {
  const began = performance.now(),
    config = configOf(r),
    families = Array.from({ length: FAMILIES }, (_, i) => ({ id: id<FamilyId>(`osworld/task-${i}`), seeds: [0] })),
    taskOf = (f: FamilyId): TaskId => id<TaskId>(`${f}#0`),
    entry = { file: resolve('dist/runtime.js') };
  const data = await DataManager.open({
    dir: r.dir,
    config: dataConfig(config),
    families,
    taskOf,
    store: { index: entry, create: { id: id<RunId>('scale'), createdAt: Date.now(), config } },
  });
  const desktops = new DesktopRegistry(),
    provider = desktops.wrap(syntheticProvider(r.sockets));
  const spec: DesktopSpec = { screen: r.screen, memoryMb: 512, pids: 128 };
  const pool = createPool({ provider, spec, size: r.desktops, startParallel: provider.startsAtOnce! });
  desktops.attach(pool);

  const state = new RunState(),
    log = new RunLog(quiet, data, () => process.nextTick(() => log.throwFault())),
    budget = new RunBudget({
      limits: config.budget,
      clock: systemClock,
      elapsedMs: 0,
      counts: () => ({
        rollouts: data.counts().ledger.generated,
        errors: 0,
        updates: data.counts().trained,
        updating: 0,
      }),
    }),
    monitor = new RunMonitor({ config, data, clock: systemClock, budget, state, log });
  const caller = new ModelThread(entry);
  const policy = createOpenAiPolicy({
    baseUrls: r.models,
    model: 'scale',
    maxTokens: 512,
    images: 5,
    coordinates: 'qwen25',
    caller,
    ...keptScreens(data.frames),
  });
  const orders = new OrderQueue(data, {
    limit: r.desktops + 2,
    version: () => state.version,
    onReady: () => scheduler.wake(),
    onFault: (e) => log.fault(e),
  });
  const scheduler = new Scheduler(
    {
      pool,
      clock: systemClock,
      episode: {
        policy,
        tasks: judging,
        frames: data.frames,
        clock: systemClock,
        timeoutMs: config.rollout.taskTimeoutS * 1000,
      },
      next: () => orders.take(),
      admit: () => orders.ready,
      taskOf: (o) => taskFor(o.family, o.task),
      sampling: trainingSampling(config.seed, 1),
      probeSampling: probeSampling(config.seed),
    },
    { slots: r.desktops },
  );
  const recorder = new RolloutRecorder({
    data,
    state,
    log,
    successes: await Successes.load(data, config.curation.pool.maxPerFamily),
    replicas: undefined,
    instructionOf: () => INSTRUCTION,
    deterministic: false,
  });
  monitor.watch({ pool } as unknown as Engine, scheduler);
  let steps = 0,
    rollouts = 0,
    errors = 0;
  scheduler.onEvent((e) => {
    recorder.onScheduler(e);
    desktops.onScheduler(e, () => INSTRUCTION, state.version);
    if (e.type === 'step') steps++;
    else if (e.type === 'ended') {
      rollouts++;
      const { outcome } = e.trajectory;
      if (outcome.kind === 'error' && outcome.error.kind !== 'cancelled' && errors++ < 3)
        console.error(outcome.error.message);
    } else if (e.type === 'leaseFailed') throw new Error(`no desktop: ${e.error.message}`);
  });
  const stopWindow = watchAsWindow(data, desktops),
    stopTraining = trainAsTheyCome(data, state);
  const ticker = setInterval(() => {
    monitor.spans.flush(systemClock.now());
    monitor.noteTime();
    monitor.wireStatus(false);
  }, 1000);
  orders.fill();
  scheduler.start();
  // Of a thousand desktops some are always between two episodes.
  while (scheduler.status().running.length < AT_WORK * r.desktops) {
    if (performance.now() - began > START_MS)
      throw new Error(
        `${scheduler.status().running.length} of ${r.desktops} desktops are at work after ${START_MS / 60_000} minutes`,
      );
    await sleep(200);
  }
  const startMs = performance.now() - began;
  await sleep(r.warmMs);

  await window('begins');
  const at = { steps, rollouts, errors, size: await sizes(r.dir), frames: data.store.frames.stats() },
    used = usedFromNow();
  let rss = 0;
  const look = setInterval(() => {
    rss = Math.max(rss, process.memoryUsage.rss());
  }, 250);
  await sleep(r.windowMs);
  clearInterval(look);
  const result: DaemonResult = {
    ...used(),
    steps: steps - at.steps,
    rollouts: rollouts - at.rollouts,
    errors: errors - at.errors,
    rssMb: rss / MB,
    heapMb: process.memoryUsage().heapUsed / MB,
    journalKb: 0,
    framesMb: 0,
    newScreens: share(at.frames, data.store.frames.stats()),
    startMs,
  };
  await window('ended');
  const after = await sizes(r.dir);
  clearInterval(ticker);
  stopWindow();
  stopTraining();
  await scheduler.stop({ graceMs: 0 });
  await orders.close();
  await pool.close();
  caller.close();
  budget.close();
  await data.close();
  return {
    ...result,
    journalKb: (after.journal - at.size.journal) / 1024,
    framesMb: (after.frames - at.size.frames) / MB,
  };
}

const INSTRUCTION = 'Open the list beside the calendar, choose the entry that ends on Friday, and press the button.';

function configOf(r: DaemonRequest): RunConfig {
  return parseRunFile({
    policy: { kind: 'openai', openai: { baseUrls: [...r.models], model: 'scale' } },
    desktops: { count: r.desktops, screen: r.screen },
    rollout: { maxSteps: 30, taskTimeoutS: 7200 },
    warmStart: { demonstrations: 0, steps: 0 },
  });
}

const taskFor = (family: FamilyId, task: TaskId): Task => ({
  id: task,
  family,
  instruction: INSTRUCTION,
  config: [],
  evaluator: { func: 'exact_match' },
  relatedApps: [],
  infeasible: false,
});
/** A command to set up and a file to judge by, as most task files have. */
const judging: TaskEngine = {
  check: () => [],
  async setup(_task, desktop) {
    await desktop.exec(['true']);
  },
  async verify(_task, desktop) {
    const said = (await desktop.readFile('/home/user/answer')).toString();
    return said === 'yes'
      ? { kind: 'success', reward: 1, truncated: false }
      : { kind: 'failure', reward: 0, truncated: false };
  },
};
const quiet = { status: () => undefined, note: () => undefined, end: () => undefined };

/** Desktops behind sockets, put together as the Kubernetes provider does. */
function syntheticProvider(sockets: readonly string[]): DesktopProvider {
  const relays = new Map<string, Relay>();
  let made = 0;
  return {
    name: 'kubernetes',
    startsAtOnce: 32,
    status: () => Promise.resolve({ provider: 'kubernetes', ok: true, detail: 'synthetic' }),
    async create(spec) {
      const n = made++,
        socket = connect(sockets[n % sockets.length]!);
      await new Promise<void>((done, fail) => socket.once('connect', done).once('error', fail));
      const relay = new Relay(
          { input: socket, output: socket, close: () => socket.destroy() },
          { deflate: false, screen: spec.screen },
        ),
        agent = new AgentClient(await relay.connect('/run/dart/agent.sock'));
      const d = new SandboxDesktop({
        id: id<DesktopId>(`k8s-${n.toString(16).padStart(8, '0')}`),
        provider: 'kubernetes',
        spec,
        agent,
        channels: {
          openX: async () => X11Client.over(await relay.connect('/tmp/.X11-unix/X0'), spec.screen),
          openScreen: () => screenOver(relay),
          openSettler: (x) => agentSettler(x, agent),
        },
      });
      relays.set(d.id, relay);
      await d.reset();
      return d;
    },
    async reset(d) {
      await (d as SandboxDesktop).reset();
      return d;
    },
    destroy(d) {
      (d as SandboxDesktop).dispose();
      relays.get(d.id)?.close();
      relays.delete(d.id);
      return Promise.resolve();
    },
    reap: () => Promise.resolve(0),
    dispose: () => Promise.resolve(),
  };
}

/** Stands for the trainer: takes every batch of groups when it is ready, and makes a version of it at once. */
function trainAsTheyCome(data: DataManager, state: RunState): () => void {
  let busy = false,
    stopped = false;
  const look = async (): Promise<void> => {
    if (busy || stopped) return;
    busy = true;
    try {
      for (;;) {
        const batch = await data.claimBatch({ version: state.version, minGroups: 8, maxGroups: 8 });
        if (!batch || stopped) return;
        await data.trained(batch.id, state.version + 1);
        state.version++;
      }
    } finally {
      busy = false;
    }
  };
  const off = data.onChange(() => {
    ignoreFailure(look(), 'the journal has been closed');
  });
  return () => {
    stopped = true;
    off();
  };
}

const share = (from: FrameStats, to: FrameStats): number =>
  (to.written - from.written) / Math.max(1, to.puts - from.puts);

async function sizes(dir: string): Promise<{ readonly journal: number; readonly frames: number }> {
  const of = async (d: string): Promise<number> => {
    let n = 0;
    for (const e of await readdir(d, { withFileTypes: true, recursive: true }))
      if (e.isFile())
        n += await stat(join(e.parentPath, e.name)).then(
          (s) => s.size,
          () => 0,
        );
    return n;
  };
  return { journal: await of(join(dir, 'journal')), frames: await of(join(dir, 'frames')) };
}
const sleep = (ms: number): Promise<void> =>
  new Promise((r) => {
    setTimeout(r, ms);
  });
