import { PRESETS } from '../../../runtime/config/index.js';
import type { Bar } from '../lib/report.js';
import type { Estimate } from '../schedule/statistics.js';
import type { MainEffect } from './additive.js';
import { amongWhich, onByDefault } from './mechanisms.js';
import { RELEVANT } from './plan.js';

/** Of a table of effects, here and in the page of all benchmarks. */
export const EFFECT_COLUMNS = [
  'mechanism',
  'unseen words, points',
  'verdict',
  'of these that can move, points',
  'other arrangements, points',
  'by default',
  'in the quick start',
];

export interface Judged {
  /** Points of success. */
  readonly points: number;
  readonly low: number;
  readonly high: number;
  /** Its interval leaves out none. */
  readonly resolved: boolean;
  /** Its interval leaves out an effect of `RELEVANT` points in either direction. */
  readonly excluded: boolean;
  readonly verdict: string;
}

export function judged({ mean, half }: Pick<Estimate, 'mean' | 'half'>): Judged {
  const [points, low, high] = [mean, mean - half, mean + half].map((x) => 100 * x) as [number, number, number],
    resolved = low > 0 || high < 0,
    excluded = low > -RELEVANT && high < RELEVANT;
  const verdict = resolved
    ? `${low > 0 ? 'helps' : 'hurts'}${excluded ? `, by less than ${RELEVANT} points` : ''}`
    : excluded
      ? `no effect of ${RELEVANT} points`
      : 'cannot be told';
  return { points, low, high, resolved, excluded, verdict };
}

export interface EffectBar extends Bar, Pick<Judged, 'low' | 'high' | 'resolved' | 'excluded'> {}
/** Holds where the effect is told from none or from `RELEVANT` points; which of both is no merit of the benchmark. */
export function effectBar(e: MainEffect): EffectBar {
  const { points, low, high, resolved, excluded, verdict } = judged(e);
  return {
    name: `effect_${e.mechanism.name.replaceAll('-', '_')}`,
    value: points,
    unit: `points of success on unseen words [${low.toFixed(1)}, ${high.toFixed(1)}]: ${verdict}`,
    goal: `0, or ${RELEVANT} either way, outside its interval`,
    holds: resolved || excluded,
    low,
    high,
    resolved,
    excluded,
  };
}

export const signed = (x: number, digits = 1): string => `${x >= 0 ? '+' : ''}${x.toFixed(digits)}`;
export const written = (e: Pick<Estimate, 'mean' | 'half'>, digits = 1, scale = 1): string =>
  `${signed(scale * e.mean, digits)} ± ${(scale * e.half).toFixed(digits)}`;

/** As a row of the JSON, which the tables of pages are made of. */
export function effectRow(
  e: MainEffect,
  heldout: Estimate | undefined,
  moved: Estimate | undefined,
): Record<string, unknown> {
  const { name, label, ours } = e.mechanism,
    { points, low, high, resolved, excluded, verdict } = judged(e);
  return {
    section: 'effect',
    mechanism: name,
    label,
    ours: ours === true,
    among: amongWhich(e.mechanism),
    points,
    low,
    high,
    resolved,
    excluded,
    verdict,
    heldout: 100 * (heldout?.mean ?? NaN),
    'heldout±': 100 * (heldout?.half ?? NaN),
    moved: 100 * (moved?.mean ?? NaN),
    'moved±': 100 * (moved?.half ?? NaN),
    default: onByDefault(e.mechanism) ? 'on' : 'off',
    quickstart: onByDefault(e.mechanism, PRESETS.quickstart) ? 'on' : 'off',
  };
}
