import type { RunFile } from '../../../runtime/config/index.js';
import { merge } from '../../../runtime/config/index.js';
import type { Experiment } from '../lib/experiments.js';
import { VARIANTS, switches, type Variant } from './mechanisms.js';

export interface CurationPlan {
  readonly seeds: readonly number[];
  readonly variants: readonly string[];
  /** Training rollouts of a run. */
  readonly budget: number;
  /** Probe episodes, before and after. */
  readonly probe: number;
  readonly quick: boolean;
}
export const baseOf = (seed: number): string => `base-s${seed}`;

/**
 * Short templates over four applications, so that a few hundred rollouts are a minute or two and yet a weakly taught
 * policy has much to gain.
 */
const FAMILIES = [
  'press-two',
  'list-confirm',
  'entry-type',
  'note-save',
  'note-replace',
  'file-rename',
  'folder-new',
  'calc-copy',
];

const READING = { screens: 600, steps: 700 };

/**
 * Per seed one weak warm start, evaluated, then every variant from it with the same number of rollouts; a variant of
 * all seeds before the next, so that what there is of an unfinished plan can be compared.
 */
export function curationPlan(p: CurationPlan): Experiment[] {
  const wanted = p.variants.map((n): Variant => {
    const v = VARIANTS.find((x) => x.name === n);
    if (!v) throw new Error(`--variants ${n}: unknown; there are ${VARIANTS.map((x) => x.name).join(', ')}`);
    return v;
  });
  const shared: RunFile = {
    tasks: { families: p.quick ? ['press-button', 'list-pick'] : FAMILIES },
    desktops: { count: 6 },
  };
  const base = (seed: number): Experiment => ({
    name: baseOf(seed),
    variant: 'base',
    seed,
    half: 'redo',
    file: {
      ...shared,
      name: 'curation-base',
      seed,
      evaluation: { episodes: p.probe, untrained: false, everyMinutes: 0 },
      budget: { rollouts: 1 },
      warmStart: p.quick
        ? { demonstrations: 3, steps: 60, lr: 2e-3 }
        : { reading: READING, demonstrations: 5, steps: 170, lr: 2e-3, shift: 16 },
    },
  });
  const run = (seed: number, v: Variant): Experiment => ({
    name: `s${seed}-${v.name}`,
    variant: v.name,
    seed,
    from: baseOf(seed),
    half: 'resume',
    file: merge(
      {
        ...shared,
        name: `curation-${v.name}`,
        seed,
        policy: { temperature: 0.6 },
        evaluation: { episodes: p.probe, untrained: false, everyMinutes: 0 },
        budget: { rollouts: p.budget },
        // The base's lessons are mixed into every update, as in any run: without them the eyes blur (63 -> 47 % greedy
        // success in 400 rollouts).
        warmStart: { ...(p.quick ? {} : { reading: READING }), steps: 0 },
        trainer: { batchGroups: p.quick ? 1 : 4, epochs: 2, minibatchStates: 24, lr: 5e-4, entropyBonus: 0.002 },
      } satisfies RunFile,
      switches(v),
    ) as RunFile,
  });
  return [...p.seeds.map(base), ...wanted.flatMap((v) => p.seeds.map((seed) => run(seed, v)))];
}
