/**
 * The model of the comparison: runs, or the seeds of one configuration taken together, each with a colour and a name;
 * and where their curves lie on an axis. Pure.
 */
import type { ComparedRun, Comparison, EvalPoint, RunProgressCurve } from '../../runtime/protocol/types.js';
import { wilson } from '../../runtime/protocol/shared.js';
import type { Hue } from '../ui/chartSpec.js';
import { dayTime } from '../dashboard/format.js';
import { t } from '../ui/words.js';

export type CompareAxis = 'time' | 'updates' | 'rollouts' | 'actions' | 'tokens';
export const axes: readonly CompareAxis[] = ['time', 'updates', 'rollouts', 'actions', 'tokens'];

/** One line of every chart: a run, or all seeds of a configuration. */
export interface Entity {
  readonly runs: readonly ComparedRun[];
  readonly label: string;
  readonly hue: Hue;
  readonly dash: readonly number[] | undefined;
}
const hues: readonly Hue[] = ['blue', 'orange', 'green', 'purple', 'red', 'yellow'],
  dashes: readonly (readonly number[] | undefined)[] = [undefined, [7, 3], [2, 3], [9, 3, 2, 3]];

/** The lines, in the order of the runs; `grouped`: runs that differ in nothing but the seed are one. */
export function entitiesOf(c: Comparison, grouped: boolean): readonly Entity[] {
  const sets: ComparedRun[][] = [];
  for (const r of c.runs) {
    const same = grouped ? sets.find((s) => s[0]!.group === r.group) : undefined;
    if (same) same.push(r);
    else sets.push([r]);
  }
  const labels = labelsOf(c, sets);
  return sets.map((runs, i) => ({
    runs,
    label: labels[i]!,
    hue: hues[i % hues.length]!,
    dash: dashes[Math.floor(i / hues.length) % dashes.length],
  }));
}
/**
 * The name; of those that share one, with what sets them apart: as few options as do, then the seed, then the start.
 */
function labelsOf(c: Comparison, sets: readonly (readonly ComparedRun[])[]): string[] {
  const first = sets.map((s) => s[0]!),
    seedOf = (s: readonly ComparedRun[]): string =>
      s.length > 1 ? t('{0} seeds', s.length) : s[0]!.seed === undefined ? '' : t('seed {0}', s[0]!.seed),
    parts = sets.map((s) => [
      ...c.config
        .slice(0, 3)
        .map((d) => `${d.key.split('.').at(-1)!} ${valueWords(d.values[c.runs.indexOf(s[0]!)]!, 24)}`),
      seedOf(s),
      dayTime(s[0]!.createdAt),
    ]);
  const labels = first.map((r) => r.name);
  for (let k = 0; k < (parts[0]?.length ?? 0); k++) {
    const before = [...labels];
    before.forEach((label, i) => {
      // A part that all of one name share says nothing.
      const same = before.flatMap((x, j) => (x === label ? [j] : []));
      if (same.length > 1 && new Set(same.map((j) => parts[j]![k])).size > 1 && parts[i]![k])
        labels[i] = `${label}, ${parts[i]![k]!}`;
    });
  }
  // The label of a mean over seeds says so.
  return labels.map((label, i) => {
    const seeds = sets[i]!.length > 1 ? seedOf(sets[i]!) : '';
    return seeds === '' || label.endsWith(`, ${seeds}`) ? label : `${label}, ${seeds}`;
  });
}
/** A value of a run file as a person would write it. */
export function valueWords(json: string, most = 200): string {
  if (json === '') return t('not set');
  const value: unknown = JSON.parse(json),
    words = typeof value === 'string' ? value : Array.isArray(value) ? value.map(String).join(', ') : json;
  return words.length > most ? `${words.slice(0, most - 1)}…` : words;
}

/** Runs that cannot be placed on an axis: they were trained before what it counts was recorded. */
export const without = (runs: readonly ComparedRun[], axis: CompareAxis): readonly ComparedRun[] =>
  runs.filter((r) => columnOf(r.progress, axis) === undefined);
const columnOf = (p: RunProgressCurve, axis: CompareAxis): readonly number[] | undefined =>
  axis === 'time' ? p.workedMs : p[axis];
/** The runs of a line that have a place on the axis. */
const placeable = (e: Entity, axis: CompareAxis): readonly ComparedRun[] =>
  e.runs.filter((r) => columnOf(r.progress, axis));

/** Places of ascending moments of a run on an axis; counts are whole. */
export function placed(p: RunProgressCurve, at: readonly number[], axis: CompareAxis): number[] {
  const x = resample({ x: p.at, y: columnOf(p, axis) ?? [] }, at);
  return axis === 'time' ? x : x.map(Math.floor);
}

export interface Line {
  readonly x: readonly number[];
  readonly y: readonly number[];
  readonly low?: readonly number[];
  readonly high?: readonly number[];
}
/** Places at which several lines are averaged, where they have more points than that. */
const GRID = 200;

/**
 * The mean of several lines with the lowest and the highest of them as band, as far as all of them go: beyond that it
 * would be the mean of fewer. One line is itself.
 */
export function aggregate(lines: readonly Line[]): Line {
  const some = lines.filter((l) => l.x.length > 0);
  if (some.length <= 1) return some[0] ?? { x: [], y: [] };
  const from = Math.max(...some.map((l) => l.x[0]!)),
    to = Math.min(...some.map((l) => l.x.at(-1)!));
  if (from > to) return { x: [], y: [] };
  const own = [...new Set(some.flatMap((l) => l.x))].filter((x) => x >= from && x <= to).sort((a, b) => a - b),
    x = own.length <= GRID ? own : Array.from({ length: GRID }, (_, i) => from + ((to - from) * i) / (GRID - 1)),
    ys = some.map((l) => resample(l, x));
  const at = (f: (values: readonly number[]) => number): number[] => x.map((_, i) => f(ys.map((v) => v[i]!)));
  return {
    x,
    y: at((v) => v.reduce((a, b) => a + b, 0) / v.length),
    low: at((v) => Math.min(...v)),
    high: at((v) => Math.max(...v)),
  };
}
/** Values of a line at ascending places, in one pass; its ends beyond them. */
function resample(l: Line, x: readonly number[]): number[] {
  let k = 0;
  if (l.x.length === 0) return x.map(() => 0);
  return x.map((at) => {
    while (k + 1 < l.x.length && l.x[k + 1]! <= at) k++;
    const x0 = l.x[k]!,
      x1 = l.x[k + 1];
    if (x1 === undefined || at <= x0) return l.y[k]!;
    return l.y[k]! + ((l.y[k + 1]! - l.y[k]!) * (at - x0)) / (x1 - x0);
  });
}

/** Success of training rollouts, each task weighing the same. */
export const trainingLine = (e: Entity, axis: CompareAxis): Line =>
  aggregate(
    placeable(e, axis).map((r) => ({
      x: placed(r.progress, r.success.at, axis),
      y: r.success.mean,
      ...(e.runs.length === 1 ? { low: r.success.low, high: r.success.high } : {}),
    })),
  );
/** Success of evaluations: of one run with the interval of each, of several the range of the seeds. */
export const evaluationLine = (e: Entity, axis: CompareAxis): Line =>
  aggregate(
    placeable(e, axis).map((r) => {
      const evals = r.evals.filter((v) => v.episodes > 0);
      return {
        x: placed(
          r.progress,
          evals.map((v) => v.at),
          axis,
        ),
        y: evals.map((v) => v.successes / v.episodes),
        ...(e.runs.length === 1 ? { low: evals.map((v) => v.low), high: evals.map((v) => v.high) } : {}),
      };
    }),
  );
export const metricLine = (e: Entity, name: string, axis: CompareAxis): Line =>
  aggregate(
    placeable(e, axis).flatMap((r) => {
      const s = r.series.find((x) => x.name === name);
      return s ? [{ x: placed(r.progress, s.at, axis), y: s.value }] : [];
    }),
  );

export interface Rate {
  readonly rate: number;
  readonly low: number;
  readonly high: number;
  readonly episodes: number;
  readonly successes: number;
  /** Lowest and highest of several runs. */
  readonly range?: readonly [number, number];
}
/** Success of several runs' episodes taken together, with the 95 % interval of so many episodes. */
function pooled(parts: readonly { readonly episodes: number; readonly successes: number }[]): Rate | undefined {
  const judged = parts.filter((p) => p.episodes > 0),
    episodes = judged.reduce((a, p) => a + p.episodes, 0),
    successes = judged.reduce((a, p) => a + p.successes, 0);
  if (episodes === 0) return undefined;
  const rates = judged.map((p) => p.successes / p.episodes);
  return {
    ...wilson(successes, episodes),
    episodes,
    successes,
    ...(judged.length > 1 ? { range: [Math.min(...rates), Math.max(...rates)] as const } : {}),
  };
}
export const lastEvaluation = (runs: readonly ComparedRun[]): Rate | undefined =>
  pooled(runs.flatMap((r): EvalPoint[] => r.evals.filter((e) => e.episodes > 0).slice(-1)));

export interface TaskCell {
  /** The newest evaluation that had episodes of the task. */
  readonly evaluation?: Rate;
  /** Before there is one: of the newest training rollouts. */
  readonly recent?: { readonly rate: number; readonly of: number };
}
export interface TaskLine {
  readonly family: string;
  readonly title?: string | undefined;
  readonly heldOut: boolean;
  readonly infeasible: boolean;
  /** One cell for each line of the charts. */
  readonly cells: readonly TaskCell[];
  /** Largest difference between two of them; -1 where fewer than two are known. */
  readonly spread: number;
}
/** A row a task, those on which the runs differ most first. */
export function taskLines(entities: readonly Entity[]): TaskLine[] {
  const families = [...new Set(entities.flatMap((e) => e.runs.flatMap((r) => r.tasks.map((k) => k.family))))];
  return families
    .map((family): TaskLine => {
      const cells = entities.map((e) => cellOf(e, family)),
        known = cells.map((c) => c.evaluation?.rate ?? c.recent?.rate).filter((x) => x !== undefined),
        any = entities.flatMap((e) => e.runs.flatMap((r) => r.tasks.filter((k) => k.family === family)));
      return {
        family,
        title: any.find((k) => k.title)?.title,
        heldOut: any.some((k) => k.heldOut),
        infeasible: any.some((k) => k.infeasible),
        cells,
        spread: known.length > 1 ? Math.max(...known) - Math.min(...known) : -1,
      };
    })
    .sort((a, b) => b.spread - a.spread || a.family.localeCompare(b.family, 'en', { numeric: true }));
}
function cellOf(e: Entity, family: string): TaskCell {
  const rows = e.runs.flatMap((r) => r.tasks.filter((k) => k.family === family)),
    evaluation = pooled(rows.flatMap((k) => (k.evaluation ? [k.evaluation] : [])));
  if (evaluation) return { evaluation };
  const tried = rows.filter((k) => k.rate !== undefined && (k.recent ?? 0) > 0),
    of = tried.reduce((a, k) => a + k.recent!, 0);
  return of > 0 ? { recent: { rate: tried.reduce((a, k) => a + k.rate! * k.recent!, 0) / of, of } } : {};
}

/** Names of the metrics that at least one of the runs has. */
export const metricNames = (c: Comparison): string[] =>
  [...new Set(c.runs.flatMap((r) => r.series.filter((s) => s.at.length > 0).map((s) => s.name)))].sort();
