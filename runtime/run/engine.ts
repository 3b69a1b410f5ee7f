import { createPool } from '../cluster/pool.js';
import { chooseProvider, specOf } from '../cluster/provide.js';
import type { DesktopPool, DesktopProvider } from '../cluster/types.js';
import { DesktopRegistry } from '../rollout/desktopRegistry.js';
import { backendOf, type BackendRequest, type PolicyBackend } from './backends/index.js';
import { StartedParts, startStopped } from './backends/startedParts.js';

/** The running parts of a run, without the logic that drives them. Closed in the reverse order of starting. */
export interface Engine extends PolicyBackend {
  readonly provider: DesktopProvider;
  readonly pool: DesktopPool;
  readonly desktops: DesktopRegistry;
  /** A second, smaller set of desktops with accessibility on, for scripted demonstrations. */
  openDemoPool(size: number): DesktopPool;
  close(): Promise<void>;
}

export interface EngineRequest extends BackendRequest {
  /** Follows every desktop; a new registry when absent. */
  readonly desktops?: DesktopRegistry;
}

/** Starts provider, desktops, trainer and replicas; when one cannot start, those already started are closed. */
export async function startEngine(r: EngineRequest): Promise<Engine> {
  const parts = new StartedParts(r.signal);
  try {
    const cluster = await startCluster(r, parts);
    const backend = await backendOf(r.config.policy.kind).start(r, parts);
    return { ...cluster, ...backend, close: () => parts.close() };
  } catch (e) {
    await parts.close();
    throw r.signal.aborted ? startStopped(e) : e;
  }
}

type Cluster = Pick<Engine, 'provider' | 'pool' | 'desktops' | 'openDemoPool'>;

async function startCluster(r: EngineRequest, parts: StartedParts): Promise<Cluster> {
  const { desktops: config } = r.config,
    { background } = r.entry,
    desktops = r.desktops ?? new DesktopRegistry();
  const provider = desktops.wrap(
    await chooseProvider(config, {
      entry: r.entry,
      onFailure: (why) => r.onNote?.(`Screens of desktops are read in the main thread: ${why}.`),
    }),
  );
  parts.add(() => provider.dispose());
  await provider.reap();
  parts.throwIfCancelled();
  const open = (size: number, a11y: boolean): DesktopPool => {
    const pool = createPool({
      provider,
      hardResetEvery: config.hardResetEvery === 0 ? Number.MAX_SAFE_INTEGER : config.hardResetEvery,
      spec: specOf(config, { run: r.run, a11y, background }),
      size,
      ...(provider.startsAtOnce === undefined ? {} : { startParallel: provider.startsAtOnce }),
    });
    parts.add(() => pool.close());
    desktops.attach(pool);
    return pool;
  };
  return { provider, pool: open(config.count, false), desktops, openDemoPool: (size) => open(size, true) };
}
