import type { EvalPoint, RunState, SuccessCurve, TaskRow } from '../../../../runtime/protocol/types.js';
import { wilson } from '../../../../webview/dashboard/stats.js';

export interface MakeOptions {
  readonly seed?: number;
  readonly minutes?: number;
  readonly budgetMinutes?: number;
  readonly state?: RunState;
  readonly infeasible?: boolean;
  readonly points?: number;
  /** ms since its start in which nobody worked on it. */
  readonly outages?: readonly (readonly [number, number])[];
}

export const families: readonly (readonly [string, string, number, number, number])[] = [
  // family, title, success at first, success at last, steps
  ['calc-copy', 'Calculator: copy a result', 0.78, 0.99, 3],
  ['entry-type', 'Form: type into an entry', 0.8, 0.98, 3],
  ['file-delete', 'Files: delete a file', 0.3, 0.86, 4],
  ['file-rename', 'Files: rename a file', 0.2, 0.78, 4],
  ['folder-new', 'Files: make a folder', 0.7, 0.97, 3],
  ['form-one', 'Form: fill a field and send', 0.08, 0.72, 4],
  ['list-confirm', 'List: choose and confirm', 0.45, 0.93, 4],
  ['list-pick', 'List: pick an item', 0.82, 0.99, 3],
  ['note-replace', 'Notes: replace the text', 0.7, 0.97, 4],
  ['note-save', 'Notes: write and save', 0.76, 0.98, 3],
  ['press-button', 'Window: press a button', 0.9, 1, 2],
  ['press-two', 'Windows: press in two', 0.4, 0.92, 3],
  ['term-touch', 'Terminal: make a file', 0.88, 1, 2],
];
export function random(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
export const gauss = (r: () => number): number => Math.sqrt(-2 * Math.log(1 - r())) * Math.cos(2 * Math.PI * r());
export const clamp = (x: number, lo: number, hi: number): number => Math.max(lo, Math.min(hi, x));

/** How a made-up run goes: when it is where, and how well it does what. */
export interface Course {
  /** Every part of the run draws from it, in the order in which `makeRun` makes them. */
  readonly r: () => number;
  readonly createdAt: number;
  /** ms from its start to its first update. */
  readonly warm: number;
  readonly now: number;
  /** ms since its first update. */
  readonly train: number;
  readonly version: number;
  /** Rollouts that have ended. */
  readonly ended: number;
  readonly perHour: number;
  readonly points: number;
  readonly times: readonly number[];
  readonly infeasible: boolean;
  /** Share of what there is to learn. */
  learnt(t: number): number;
  rateAt(family: number, t: number): number;
  /** Success over what the planner asks for, which is the hard tasks more often. */
  hard(t: number): number;
}
export function courseOf(o: MakeOptions): Course {
  const r = random(o.seed ?? 7),
    minutes = o.minutes ?? 13.6,
    createdAt = 1_795_178_843_460,
    warm = Math.min(200_000, minutes * 60_000 * 0.25),
    now = createdAt + minutes * 60_000,
    points = o.points ?? 400;
  const train = now - createdAt - warm,
    version = Math.floor(train / 8000) + 2,
    perHour = 21_400,
    ended = Math.round((train / 3.6e6) * perHour);
  const learnt = (t: number): number =>
    1 - Math.exp(-2.6 * clamp((t - createdAt - warm) / Math.max(train, 12 * 60_000), 0, 1));
  const rateAt = (f: number, t: number): number => families[f]![2] + (families[f]![3] - families[f]![2]) * learnt(t);
  const times = Array.from({ length: points }, (_, i) => createdAt + warm + (train * (i + 1)) / points);

  const hard = (t: number): number =>
    families.reduce((a, _, f) => a + rateAt(f, t) * (1.3 - rateAt(f, t)), 0) /
    families.reduce((a, _, f) => a + (1.3 - rateAt(f, t)), 0);
  return {
    r,
    createdAt,
    warm,
    now,
    train,
    version,
    ended,
    perHour,
    points,
    times,
    infeasible: o.infeasible ?? false,
    learnt,
    rateAt,
    hard,
  };
}

export function curvesOf({ r, times, ended, points, infeasible, learnt, rateAt, hard }: Course): SuccessCurve[] {
  const curveOf = (family: string | undefined, base: (t: number) => number, impossible?: boolean): SuccessCurve => {
    let wobble = 0;
    const mean = times.map((t) => {
        wobble = wobble * 0.93 + gauss(r) * 0.022;
        return clamp(base(t) + wobble, 0, 1);
      }),
      bands = mean.map((m) => wilson(Math.round(m * 64), 64)!);
    return {
      ...(family ? { family } : {}),
      ...(impossible ? { infeasible: true } : {}),
      window: 64,
      ...(family ? {} : { balanced: { families: families.length, each: 5 } }),
      at: times,
      rollout: times.map((_, i) => Math.round((ended * (i + 1)) / points / (family ? families.length : 1))),
      mean,
      low: bands.map((b) => b.low),
      high: bands.map((b) => b.high),
    };
  };
  return [
    curveOf(undefined, hard),
    ...(infeasible ? [curveOf(undefined, (t) => 0.15 + 0.5 * learnt(t), true)] : []),
    ...families.map(([f], i) => curveOf(`desk/${f}`, (t) => rateAt(i, t))),
  ];
}
export function evalsOf({ r, createdAt, warm, now, infeasible, learnt, rateAt }: Course): EvalPoint[] {
  const evalAt = (label: string, t: number, v: number, per: (f: number) => number): EvalPoint => {
    const perFamily = Object.fromEntries(
        families.map(([f], i) => [
          `desk/${f}`,
          { episodes: 5, successes: clamp(Math.round(per(i) * 5 + gauss(r) * 0.3), 0, 5) },
        ]),
      ),
      successes = Math.min(
        64,
        Object.values(perFamily).reduce((a, x) => a + x.successes, 0),
      ),
      w = wilson(successes, 64)!;
    return {
      label,
      at: t,
      version: v,
      episodes: 64,
      successes,
      errors: 0,
      low: w.low,
      high: w.high,
      perFamily,
      ...(infeasible && t > createdAt + warm
        ? { infeasible: { episodes: 16, successes: Math.round(16 * (0.15 + 0.5 * learnt(t))) } }
        : {}),
    };
  };
  const evals = [
    evalAt('untrained', createdAt + 7000, 0, () => 0),
    evalAt('warm start', createdAt + warm - 5000, 2, (f) => rateAt(f, createdAt + warm) * 0.9),
  ];
  for (let t = createdAt + warm + 240_000; t < now; t += 240_000)
    evals.push(
      evalAt(
        `after ${Math.round((t - createdAt) / 60_000)} min`,
        t,
        Math.floor((t - createdAt - warm) / 8000) + 2,
        (f) => clamp(rateAt(f, t) + 0.06, 0, 1),
      ),
    );

  return evals;
}
/** The newest evaluation of a family. */
export function evaluated(evals: readonly EvalPoint[], family: string): TaskRow['evaluation'] {
  const e = evals.at(-1),
    of = e?.perFamily[family];
  return e && of && { version: e.version, ...of, ...wilson(of.successes, of.episodes)! };
}
