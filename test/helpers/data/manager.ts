import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { id, random, StudioError } from '../../../runtime/domain/index.js';
import type {
  Action,
  FamilyId,
  Outcome,
  PolicyVersion,
  Provenance,
  Random,
  RolloutId,
  RunId,
  Step,
  TaskId,
  Trajectory,
} from '../../../runtime/domain/index.js';
import { parseRunFile } from '../../../runtime/config/index.js';
import type { DataConfig } from '../../../runtime/data/config.js';
import { DataManager } from '../../../runtime/data/dataManager.js';
import type { DataManagerOptions } from '../../../runtime/data/dataManager.js';
import type { RolloutOrder } from '../../../runtime/data/types.js';

export const familyIds = ['alpha', 'beta', 'gamma'].map((f) => id<FamilyId>(f));
export const taskOf = (f: FamilyId, seed: number): TaskId => id<TaskId>(`${f}#${seed}`);

/** Options a test starts from; each test says what it is about. */
export const baseDataConfig: DataConfig = {
  ...parseRunFile({}).curation,
  dynamicRollouts: { enabled: true, max: 8, threshold: 0.6, window: 32 },
  dynamicLength: { enabled: true, global: 30, floor: 3, slack: 2, exploreShare: 0.1, window: 0 },
  highEntropy: { enabled: true, keep: 0.8 },
  groupFilter: { enabled: true, maxSize: 8, minSize: 2 },
  pool: {
    enabled: true,
    from: [],
    addSuccesses: true,
    selection: 'shortest',
    reuseCap: 8,
    maxAge: 50,
    maxPerFamily: 16,
  },
  staleness: { enabled: true, eta: 2, perUpdate: 64 },
  planner: { seed: 0, planner: 'shuffle', uncertainty: 1, pilot: 0, retries: 2 },
};

type Sections = Omit<DataConfig, 'deterministic'>;
type Deep<T> = { readonly [K in keyof T]?: Partial<T[K]> };
export function dataConfig(o: Deep<Sections> & Pick<DataConfig, 'deterministic'> = {}): DataConfig {
  const keys = Object.keys(baseDataConfig) as (keyof Sections)[],
    sections = Object.fromEntries(keys.map((k) => [k, { ...baseDataConfig[k], ...o[k] }])) as unknown as Sections;
  return { ...sections, deterministic: o.deterministic ?? false };
}

export function managerOptions(
  dir: string,
  config: DataConfig,
  o: Partial<DataManagerOptions['store']> = {},
): DataManagerOptions {
  return {
    dir,
    config,
    taskOf,
    families: familyIds.map((f) => ({ id: f, seeds: { from: 1, count: 20 } })),
    store: { index: 'local', create: { id: id<RunId>('run-test'), createdAt: 1 }, ...o },
  };
}
export const openManager = (
  dir: string,
  config: DataConfig,
  o: Partial<DataManagerOptions['store']> = {},
): Promise<DataManager> => DataManager.open(managerOptions(dir, config, o));

const hash = (r: Random): string => Array.from({ length: 64 }, () => r.int(16).toString(16)).join('');
const actions: Action[] = [
  { type: 'click', at: { x: 3, y: 4 } },
  { type: 'type', text: 'hello' },
  { type: 'hotkey', keys: ['ctrl', 's'] },
  { type: 'finished' },
];

export function makeStep(
  index: number,
  r: Random,
  o: { version?: PolicyVersion; entropy?: number; human?: boolean } = {},
): Step {
  const n = 1 + r.int(3);
  const tokens = {
    logprobs: Float32Array.from({ length: n }, () => -r.next()),
    entropies: Float32Array.from({ length: n }, () => o.entropy ?? r.next()),
    // Entropies that a test gives are meant as they are, not as those of the embedded policy's heads.
    ...(o.entropy === undefined ? { ids: Int32Array.from({ length: n }, () => r.int(2000)) } : {}),
  };
  return {
    index,
    frame: { hash: hash(r), width: 64, height: 40 },
    actions: [r.pick(actions)],
    settled: true,
    timings: { observe: 1, decide: 2, queue: 0, perform: 1, settle: 3 },
    ...(o.human ? { origin: 'human' as const } : { origin: 'policy' as const, tokens, version: o.version ?? 0 }),
  };
}
export const success: Outcome = { kind: 'success', reward: 1, truncated: false };
export const failure: Outcome = { kind: 'failure', reward: 0, truncated: true };
export const broken: Outcome = {
  kind: 'error',
  error: new StudioError('desktop.lost', 'The desktop died.', 'It is replaced.').error,
};

export const diverged: Outcome = {
  kind: 'error',
  error: new StudioError('rollout.diverged', 'A screen differed.', 'It is counted.').error,
};

export function makeTrajectory(
  o:
    | Pick<RolloutOrder, 'rollout' | 'group' | 'family' | 'task' | 'cap' | 'branch'>
    | { rollout: RolloutId; family: FamilyId; task: TaskId; cap: number; group?: undefined; branch?: undefined },
  outcome: Outcome,
  x: {
    seed?: number;
    steps?: number;
    version?: PolicyVersion;
    provenance?: Provenance;
    endedAt?: number;
    entropies?: number[];
  } = {},
): Trajectory {
  const r = random(`${o.rollout}/${x.seed ?? 0}`),
    human = x.provenance !== undefined && x.provenance.kind !== 'rollout' && x.provenance.kind !== 'probe';
  const steps = Array.from({ length: x.entropies?.length ?? x.steps ?? 1 + r.int(5) }, (_, i) =>
    makeStep(i, r, { version: x.version ?? 0, human, ...(x.entropies ? { entropy: x.entropies[i]! } : {}) }),
  );
  return {
    id: o.rollout,
    task: o.task,
    family: o.family,
    instruction: `do ${o.task}`,
    ...(o.group ? { group: o.group } : {}),
    provenance: x.provenance ?? { kind: 'rollout' },
    ...(o.branch ? { branch: o.branch } : {}),
    steps,
    outcome,
    cap: o.cap,
    startedAt: 10,
    endedAt: x.endedAt ?? 20,
    resetMs: 5,
    verifyMs: 6,
  };
}

/** A folder that is removed after `f`. */
export async function withDir<T>(f: (dir: string) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'dart-data-'));
  try {
    return await f(dir);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/**
 * The runtime bundle, built beside the installed packages so that what it leaves external is found; returns its
 * ProcessEntry.
 */
export async function bundle(entry: string, name: string): Promise<{ file: string }> {
  const { build } = await import('esbuild');
  const { copyFile, mkdir } = await import('node:fs/promises');
  const { resolve } = await import('node:path');
  const outdir = resolve('node_modules/.cache/dart-data-test', `${name}-${process.pid}`);
  await mkdir(outdir, { recursive: true });
  const banner =
    "import { createRequire as __cr } from 'node:module'; const require = __cr(import.meta.url); import { fileURLToPath as __fu } from 'node:url'; import { dirname as __dn } from 'node:path'; const __filename = __fu(import.meta.url); const __dirname = __dn(__filename);";
  await build({
    entryPoints: { [name]: entry },
    outdir,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    external: ['onnxruntime-node', 'cpu-features', '*.node'],
    banner: { js: banner },
    logLevel: 'error',
  });
  await copyFile('node_modules/sql.js/dist/sql-wasm.wasm', join(outdir, 'sql-wasm.wasm'));
  return { file: join(outdir, `${name}.js`) };
}
