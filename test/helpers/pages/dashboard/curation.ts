import { mechanismNames } from '../../../../runtime/config/index.js';
import { mechanisms } from '../../../../runtime/data/curation/registry.js';
import type { CurationChart, CurationView } from '../../../../runtime/protocol/types.js';
import { clamp, families, gauss, type Course } from './course.js';

/** Sizes and caps of a family's groups. */
export interface Groups {
  readonly family: string;
  readonly at: number[];
  readonly size: number[];
  readonly cap: number[];
}
export function groupsOf({ r, points, times, rateAt }: Course): Groups[] {
  const size = (p: number): number => (p < 0.6 ? 8 : Math.max(2, Math.floor(9 / p - 7)));
  return families.map(([f, , , , steps], i) => {
    const at = times.filter((_, k) => k % Math.max(3, Math.round(points / 60)) === i % 3);
    return {
      family: `desk/${f}`,
      at,
      size: at.map((t) => clamp(size(clamp(rateAt(i, t) + gauss(r) * 0.08, 0.05, 1)), 2, 8)),
      cap: at.map((_, k) => (k === 0 ? 12 : k < 4 ? steps + 4 : steps + 2)),
    };
  });
}
/** What the mechanisms did. */
export function curationOf({ r, times, ended }: Course, groups: readonly Groups[]): CurationView {
  const edges = Array.from({ length: 31 }, (_, i) => i * 0.06),
    counts = edges
      .slice(1)
      .map((e) =>
        Math.round(
          620 * Math.exp(-e / 0.1) +
            260 * Math.exp(-(((e - 0.45) / 0.12) ** 2)) +
            60 * Math.exp(-(((e - 0.95) / 0.2) ** 2)) +
            r() * 8,
        ),
      );
  const formed = times.filter((_, i) => i % 2 === 0),
    injected = times.filter(() => r() < 0.24);
  const data: Readonly<Record<string, CurationChart['data']>> = {
    'dynamicRollouts.size': {
      form: 'families',
      families: groups.map((g) => ({ family: g.family, at: g.at, value: g.size })),
    },
    'dynamicLength.cap': {
      form: 'families',
      families: groups.map((g) => ({ family: g.family, at: g.at, value: g.cap })),
    },
    'highEntropy.entropy': {
      form: 'histogram',
      edges,
      counts,
      mark: {
        at: 0.021,
        label: 'threshold {0}',
        summary: 'Threshold of the last group: {0}; about {1} of these steps are below it and would be dropped.',
      },
    },
    'highEntropy.kept': {
      form: 'series',
      at: formed,
      value: formed.map(() => clamp(0.79 + gauss(r) * 0.03, 0.66, 0.95)),
      meanOf: 20,
      ceil: 1,
      mark: { at: 0.8, label: 'kept by entropy: {0}' },
    },
    'pool.injections': { form: 'series', at: injected, value: injected.map((_, i) => i + 1), sum: true },
    'staleness.lag': {
      form: 'bars',
      counts: [Math.round(ended * 0.17), Math.round(ended * 0.3), Math.round(ended * 0.08)],
      behind: { by: 'lag' },
    },
  };
  return {
    // The words are those of the mechanisms themselves; what they read from a run is made up here.
    charts: mechanismNames.flatMap((name) =>
      mechanisms[name].charts.flatMap((c): CurationChart[] => {
        const id = `${name}.${c.name}`,
          made = data[id];
        return made ? [{ id, unit: c.unit, words: c.words, data: made }] : [];
      }),
    ),
    tis: {
      edges: Array.from({ length: 21 }, (_, i) => i / 20),
      counts: Array.from({ length: 20 }, (_, i) => (i === 19 ? 214 : Math.round(2 + 46 * (i / 19) ** 6 + r() * 3))),
    },
  };
}
