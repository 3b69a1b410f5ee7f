import type { RunFile } from '../../../runtime/config/index.js';
import { merge } from '../../../runtime/config/index.js';

/** One thing curation does, as what it changes in a run file. */
export interface Mechanism {
  readonly name: string;
  readonly label: string;
  readonly ours?: boolean;
  readonly on: RunFile;
  readonly off: RunFile;
  /** Variants whose difference is its effect among the others, where that is not "all" less "all but it". */
  readonly among?: readonly [plus: string, minus: string];
}

/** Demonstrations of a family that make up the pre-collected pool. */
export const POOL_DEMONSTRATIONS = 4;

/** In the order of the paper's ablation, then ours. */
export const MECHANISMS: readonly Mechanism[] = [
  {
    name: 'pool',
    label: 'experience pool, injected and imitated',
    on: {
      curation: { pool: { enabled: true } },
      warmStart: { demonstrations: POOL_DEMONSTRATIONS },
      trainer: { replay: 24, imitationCoef: 0.3 },
    },
    off: { curation: { pool: { enabled: false } }, warmStart: { demonstrations: 0 }, trainer: { replay: 0 } },
  },
  {
    name: 'dynamic-n',
    label: 'dynamic rollout number',
    on: { curation: { dynamicRollouts: { enabled: true } } },
    off: { curation: { dynamicRollouts: { enabled: false } } },
  },
  {
    name: 'dynamic-length',
    label: 'dynamic trajectory length',
    on: { curation: { dynamicLength: { enabled: true } } },
    off: { curation: { dynamicLength: { enabled: false } } },
  },
  {
    name: 'high-entropy',
    label: 'high-entropy steps',
    on: { curation: { highEntropy: { enabled: true } } },
    off: { curation: { highEntropy: { enabled: false } } },
  },
  {
    name: 'tis',
    label: 'truncated importance sampling',
    on: { trainer: { tis: { enabled: true } } },
    off: { trainer: { tis: { enabled: false } } },
  },
  {
    name: 'variance',
    label: 'variance-aware dispatch',
    ours: true,
    on: { curation: { planner: 'variance', uncertainty: 2 } },
    off: { curation: { planner: 'shuffle' } },
  },
  {
    name: 'decided',
    label: 'groups stop when decided',
    ours: true,
    on: { curation: { pilot: 4 } },
    off: { curation: { pilot: 0 } },
  },
  {
    name: 'reuse',
    label: 'longer reuse of a batch',
    ours: true,
    on: { trainer: { reuse: { enabled: true } } },
    off: { trainer: { reuse: { enabled: false } } },
  },
  {
    name: 'fork',
    label: 'fork-level advantages',
    ours: true,
    on: { trainer: { credit: 'fork' } },
    off: { trainer: { credit: 'trajectory' } },
  },
];

/** The planner's default strength, in place of the stronger one above. */
export const MILD: Mechanism = {
  name: 'variance-mild',
  label: 'variance-aware dispatch, milder',
  ours: true,
  on: { curation: { planner: 'variance', uncertainty: 1 } },
  off: {},
  among: ['mild', 'without-variance'],
};
const ALL_MECHANISMS: readonly Mechanism[] = [...MECHANISMS, MILD];

const together = (name: string, label: string, of: readonly Mechanism[]): Mechanism => ({
  name,
  label,
  ours: true,
  on: of.reduce<RunFile>((f, m) => merge(f, m.on) as RunFile, {}),
  off: of.reduce<RunFile>((f, m) => merge(f, m.off) as RunFile, {}),
});
/** What the paper does not have, as one. */
export const OURS = together(
  'ours',
  'what is ours, together',
  MECHANISMS.filter((m) => m.ours),
);

export interface Variant {
  readonly name: string;
  readonly label: string;
  readonly on: ReadonlySet<string>;
}
const variant = (name: string, label: string, on: readonly Mechanism[]): Variant => ({
  name,
  label,
  on: new Set(on.map((m) => m.name)),
});

const both = (m: Mechanism, parts: readonly Mechanism[] = [m]): Variant[] => [
  variant(
    `without-${m.name}`,
    `all but ${m.label}`,
    MECHANISMS.filter((x) => !parts.includes(x)),
  ),
  variant(`only-${m.name}`, `only ${m.label}`, parts),
];
/**
 * All, none, and of each mechanism both: all but it, and it alone. The paper's come first, then ours together, then
 * ours one by one, then what one of them does at another strength.
 */
export const VARIANTS: readonly Variant[] = [
  variant('all', 'all', MECHANISMS),
  variant('none', 'none', []),
  ...MECHANISMS.filter((m) => !m.ours).flatMap((m) => both(m)),
  ...both(
    OURS,
    MECHANISMS.filter((m) => m.ours),
  ),
  ...MECHANISMS.filter((m) => m.ours).flatMap((m) => both(m)),
  variant(
    'mild',
    'all, variance-aware dispatch milder',
    ALL_MECHANISMS.filter((m) => m.name !== 'variance'),
  ),
  variant('only-variance-mild', `only ${MILD.label}`, [MILD]),
];
/** What a report says something about. */
export const MEASURED: readonly Mechanism[] = [
  ...MECHANISMS.filter((m) => !m.ours),
  OURS,
  ...ALL_MECHANISMS.filter((m) => m.ours),
];

/** What a variant changes in a run file; every mechanism is switched explicitly, so that no default decides. */
export const switches = (v: Variant): RunFile =>
  ALL_MECHANISMS.reduce<RunFile>((file, m) => merge(file, v.on.has(m.name) ? m.on : m.off) as RunFile, {});
