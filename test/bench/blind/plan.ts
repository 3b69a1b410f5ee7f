import { QUICKSTART_FAMILIES } from '../../../runtime/config/index.js';
import { deskSuite } from '../../../runtime/tasks/suites/desk/index.js';
import type { Experiment } from '../lib/experiments.js';

export interface BlindPlan {
  readonly seeds: readonly number[];
  /** Of one run: the quick start's own budget, with as many templates as it has. */
  readonly minutes: number;
  /** So many of `blindParts`. */
  readonly parts: number;
  readonly quick: boolean;
}
/** Episodes of a template in the last evaluation: 20 % of them is four. */
const EPISODES = 20;

/** The quick start's templates, then the other training templates in parts of the same size. */
export function blindParts(): readonly (readonly string[])[] {
  const first = QUICKSTART_FAMILIES,
    rest = deskSuite()
      .families.filter((f) => f.split === 'train' && !f.infeasible && !first.includes(f.id))
      .map((f) => String(f.id));
  const parts = [first];
  for (let i = 0; i < rest.length; i += first.length) parts.push(rest.slice(i, i + first.length));
  return parts;
}

/** The quick start with one even grey in place of every screen: demonstrations, imitation and RL as always. */
export const blindPlan = (p: BlindPlan): Experiment[] =>
  p.seeds.flatMap((seed) =>
    blindParts()
      .slice(0, p.parts)
      .map((families, part): Experiment => ({
        name: `blind-${part + 1}-s${seed}`,
        variant: `part ${part + 1}`,
        seed,
        half: 'redo',
        file: {
          preset: 'quickstart',
          name: `blind-${part + 1}`,
          seed,
          tasks: { families: [...families] },
          policy: { blind: true },
          // Nothing is there to be read.
          warmStart: { reading: { screens: 0, steps: 0 } },
          evaluation: { episodes: (p.quick ? 2 : EPISODES) * families.length, untrained: false, everyMinutes: 0 },
          budget: { minutes: p.minutes },
        },
      })),
  );
