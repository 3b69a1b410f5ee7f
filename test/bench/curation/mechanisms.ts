import { merge, parseRunFile, type RunFile } from '../../../runtime/config/index.js';
import { messageOf } from '../../../runtime/domain/index.js';

/** A part of a run file; of a key that this version does not have, too. */
export type Keys = Readonly<Record<string, unknown>>;

/** One thing that curation or the trainer does to what is learned, as what it changes in a run file. */
export interface Mechanism {
  readonly name: string;
  readonly label: string;
  readonly ours?: true;
  readonly on: Keys;
  readonly off: Keys;
  /** Acts only beside these: without them it is off, and its effect is told among runs that have them. */
  readonly within?: readonly string[];
  /** Acts only without these, whose keys are the same: where one is on, it is off. */
  readonly apart?: readonly string[];
}

/** Successes imitated beside a batch: as many for each of its groups as in the quick start. */
const REPLAY = 12;

/**
 * The paper's in the order of its ablation, then ours. Keys and values of the run file stand here alone; both sides are
 * always written, so that no default decides.
 */
export const MECHANISMS: readonly Mechanism[] = [
  {
    name: 'pool',
    label: 'experience pool',
    on: { curation: { pool: { enabled: true } } },
    off: { curation: { pool: { enabled: false } } },
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
    name: 'replay',
    label: 'successes imitated beside a batch',
    ours: true,
    on: { trainer: { replay: REPLAY } },
    off: { trainer: { replay: 0 } },
  },
  {
    name: 'adaptive',
    label: 'more imitation where a family fails',
    ours: true,
    within: ['replay'],
    on: { trainer: { imitation: 'adaptive' } },
    off: { trainer: { imitation: 'fixed' } },
  },
  {
    name: 'variance',
    label: 'variance-aware dispatch',
    ours: true,
    on: { curation: { planner: 'variance' } },
    off: { curation: { planner: 'shuffle' } },
  },
  {
    name: 'strong',
    label: 'variance-aware dispatch, stronger',
    ours: true,
    within: ['variance'],
    on: { curation: { uncertainty: 2 } },
    off: { curation: { uncertainty: 1 } },
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
  {
    name: 'hindsight',
    label: 'hindsight relabelling',
    ours: true,
    within: ['pool', 'replay'],
    on: { curation: { hindsight: { enabled: true } } },
    off: { curation: { hindsight: { enabled: false } } },
  },
  {
    name: 'target-kl',
    label: 'target KL of an update',
    ours: true,
    on: { trainer: { targetKl: 0.02 } },
    off: { trainer: { targetKl: 0 } },
  },
  {
    name: 'branches',
    label: 'branches at high-entropy steps',
    ours: true,
    on: { curation: { branches: { enabled: true } } },
    off: { curation: { branches: { enabled: false } } },
  },
  {
    name: 'progress',
    label: 'credit by mid-episode checks',
    ours: true,
    apart: ['fork'],
    on: { trainer: { credit: 'progress' } },
    off: {},
  },
];

/** Switched with the others and changes nothing: its effect must come out as none. */
export const NOTHING: Mechanism = { name: 'nothing', label: 'nothing (a control of the method)', on: {}, off: {} };

/** What is on in a run, by the names of mechanisms; one that is not named is off. */
export type Levels = Readonly<Record<string, boolean>>;

/** Whether there is all that it acts beside, and nothing that takes its place. */
export const canAct = ({ within = [], apart = [] }: Mechanism, levels: Levels): boolean =>
  within.every((name) => levels[name] === true) && apart.every((name) => levels[name] !== true);
/** Whether it acts in some runs of the design only: its effect is told among those. */
export const isNested = (m: Mechanism): boolean => m.within !== undefined || m.apart !== undefined;
/** Among which runs its effect is told, in words; empty: among all. */
export const amongWhich = ({ within, apart }: Mechanism): string =>
  [within && `beside ${within.join(' and ')}`, apart && `without ${apart.join(' and ')}`]
    .filter((x) => x !== undefined)
    .join(', ');
const isOn = (m: Mechanism, levels: Levels): boolean => levels[m.name] === true && canAct(m, levels);

/** What these levels change in a run file. */
export const switches = (mechanisms: readonly Mechanism[], levels: Levels): RunFile =>
  mechanisms.reduce<unknown>((file, m) => merge(file, isOn(m, levels) ? m.on : m.off), {}) as RunFile;

export interface LeftOut {
  readonly mechanism: Mechanism;
  readonly why: string;
}
/** Those that the run file of this version has, and those that it does not, each with what is said of it. */
export function sorted(all: readonly Mechanism[] = MECHANISMS): {
  readonly known: readonly Mechanism[];
  readonly leftOut: readonly LeftOut[];
} {
  const known: Mechanism[] = [],
    leftOut: LeftOut[] = [];
  for (const mechanism of all) {
    const why = refusal(mechanism, known);
    if (why === undefined) known.push(mechanism);
    else leftOut.push({ mechanism, why });
  }
  return { known, leftOut };
}

function refusal(m: Mechanism, known: readonly Mechanism[]): string | undefined {
  const beside = known.filter((k) => m.within?.includes(k.name)),
    missing = m.within?.find((name) => !beside.some((k) => k.name === name));
  if (missing !== undefined) return `it acts only beside "${missing}", which is left out`;
  const around = switches(beside, Object.fromEntries(beside.map((k) => [k.name, true])));
  try {
    for (const side of [m.on, m.off]) parseRunFile(merge(around, side));
    return undefined;
  } catch (e) {
    return messageOf(e).split('\n')[0];
  }
}

/** Whether a run file that says no more than this has it, at this strength or another. */
export function onByDefault(m: Mechanism, beside: RunFile = {}): boolean {
  const configOf = (keys: Keys): string | undefined => {
    try {
      return JSON.stringify(parseRunFile(merge(beside, keys)));
    } catch {
      // What needs another mechanism is refused where that is off.
      return undefined;
    }
  };
  const same = (keys: Keys): boolean => configOf(keys) === configOf({});
  // One that shares its key with another has no value of its own for off.
  return !same(m.off) || (Object.keys(m.on).length > 0 && same(m.on));
}
