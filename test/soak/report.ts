import { lowest, quantile, settled, slopeOf, type Point } from './fit.js';
import type { Sample } from './sample.js';

/** Share of the time that is not judged: memory is still filling up. */
const WARM_UP = 1 / 3;
/** A shorter run says nothing of a slope: it is reported and not judged. */
const JUDGED_MINUTES = 10;
/** The same of what comes and goes: descriptors, and what a step costs. */
export const STEADY_MINUTES = 2;
/** Where others use more of the processors, how late something is is theirs to say: it is reported and not judged. */
const BUSY = 0.25;
/** What a process keeps is what it has left after collecting garbage, which it does every few minutes. */
const LEAST_EVERY_MS = 150_000;
const GOAL = {
  /** Growth an hour, as a share of what a process has. */
  memory: 0.1,
  descriptors: 2,
  delayMs: 20,
  answerMs: 100,
  drawnMs: 100,
  /** Bytes at the end, against what a step cost before. */
  growth: 1.25,
};

export interface Folder extends Point {
  readonly steps: number;
  readonly journal: number;
  readonly index: number;
  readonly frames: number;
}
export interface Answer {
  readonly question: string;
  readonly ms: number;
}
export interface Soaked {
  readonly minutes: number;
  /** Share of the processors that others used meanwhile. */
  readonly others: number;
  readonly samples: readonly Sample[];
  /** What the daemon says of its own memory. */
  readonly inside: readonly { readonly at: number; readonly heapMb: number; readonly outsideMb: number }[];
  /** How often processes were looked at. */
  readonly looks: number;
  readonly folder: readonly Folder[];
  /** The daemon's descriptors by what they are, as often. */
  readonly held: readonly Readonly<Record<string, number>>[];
  /** Second by second, delays of the daemon's event loop of 0 to 1 ms, 1 to 2 ms … (probe.ts). */
  readonly delays: readonly (readonly number[])[];
  /** Moments in which an event would have been so late: a delay of 50 ms is one delay, and ten of them. */
  readonly late: readonly (readonly number[])[];
  /** The same without waiting for a processor; none where that is not known. */
  readonly ownLate: readonly (readonly number[])[];
  /** What the window asked, and ms until it had an answer; in the order of asking. */
  readonly answers: readonly Answer[];
  /** ms until a page that is shown drew its next picture; none without a window. */
  readonly drawn: readonly number[];
}
export interface Bar {
  readonly name: string;
  readonly value: number;
  readonly goal: number;
  /** False: too short, or on a machine too busy, to say. */
  readonly judged: boolean;
  /** How long something took. */
  readonly time?: true;
  /** Of a slope: two standard errors of it. It holds where its upper end is within the goal. */
  readonly half?: number;
  /** Judged, and the goal lies between the ends of the slope: it is not met, and not missed either. */
  readonly untold?: true;
  readonly ok: boolean;
}
/** What a process holds, and how that grew. */
export interface Memory {
  readonly mean_mb: number;
  readonly mb_per_hour: number;
  /** One standard error of it. */
  readonly error: number;
}
interface Spread {
  readonly p50: number;
  readonly p99: number;
}
/** Of one question: all answers, and those of the first and the last third. */
interface AnswerCourse extends Spread {
  readonly first_third: Spread;
  readonly last_third: Spread;
}
export interface SoakReport {
  readonly minutes: number;
  /** Share of the processors that others used meanwhile. */
  readonly others: number;
  /** How often processes were looked at. */
  readonly looks: number;
  readonly steps: number;
  readonly memory: Readonly<Record<string, Memory>>;
  /** Medians of the two halves. */
  readonly descriptors: Readonly<
    Record<string, { readonly first: number; readonly last: number; readonly most: number }>
  >;
  /** Of the daemon: kinds of which the later half of the run has more, by medians. */
  readonly descriptors_gained: Readonly<Record<string, number>>;
  readonly bytes_per_step: { readonly journal: number; readonly frames: number; readonly index: number };
  /**
   * `p99` of all delays; `moments_p99` of all moments, `own`: without waiting for a processor; `worst_seconds`: in the
   * worst hundredth of seconds, of their moments.
   */
  readonly event_loop_ms: {
    readonly p99: number;
    readonly moments_p99: number;
    readonly own_moments_p99?: number;
    readonly worst_seconds_p99: number;
    readonly max: number;
  };
  readonly answer_ms: Spread & { readonly by_question: Readonly<Record<string, AnswerCourse>> };
  /** Of pages in a window; absent without one. */
  readonly drawn_ms?: Spread;
  /** A line a minute: MB of each role. */
  readonly course: readonly Readonly<Record<string, number>>[];
  readonly bars: readonly Bar[];
}

/**
 * Growth is met where the upper end of slope ± 2 standard errors is within the allowance, and missed where the lower one is
 * above it; between the two it cannot be told, and the bar does not hold.
 */
export function memoryBar(role: string, { mean_mb, mb_per_hour, error }: Memory, judged: boolean): Bar {
  const goal = GOAL.memory * mean_mb,
    half = 2 * error,
    met = mb_per_hour + half <= goal,
    missed = mb_per_hour - half > goal;
  return {
    name: `memory of ${role}, MB an hour`,
    value: round(mb_per_hour),
    half: round(half),
    goal: round(goal),
    judged,
    ...(judged && !met && !missed ? { untold: true as const } : {}),
    ok: !judged || met,
  };
}
/** A recorded report with its bars of memory told anew from the slopes that it keeps. */
export const reported = <R extends Pick<SoakReport, 'minutes' | 'memory' | 'bars'>>(r: R): R => ({
  ...r,
  bars: [
    ...Object.entries(r.memory).map(([role, m]) => memoryBar(role, m, r.minutes >= JUDGED_MINUTES)),
    ...r.bars.filter((b) => !b.name.startsWith('memory of ')),
  ],
});

/** Pure. */
export function soakReport(s: Soaked): SoakReport {
  const long = s.minutes >= JUDGED_MINUTES,
    steady = s.minutes >= STEADY_MINUTES,
    quiet = s.others <= BUSY,
    roles = [...new Set(s.samples.map((x) => x.role))],
    bars: Bar[] = [],
    bar = (name: string, value: number, goal: number, judged: boolean): void => {
      bars.push({ name, value: round(value), goal: round(goal), judged, ok: !judged || value <= goal });
    },
    timeBar = (name: string, ms: number, goal: number): void => {
      bars.push({ name, value: round(ms), goal, judged: quiet, time: true, ok: !quiet || ms <= goal });
    };
  // The index is held in memory as a whole, and grows with the run by design.
  const indexMb = (at: number): number => (s.folder.findLast((f) => f.at <= at)?.index ?? 0) / 2 ** 20,
    memory = Object.fromEntries(
      roles.map((role) => {
        const of = perMoment(s.samples.filter((x) => x.role === role)).map((p) => ({
            at: p.at,
            value: p.rssMb - (role === 'daemon' ? indexMb(p.at) : 0),
          })),
          { mean } = slopeOf(settled(of, WARM_UP)),
          { perHour, error } = slopeOf(lowest(settled(of, WARM_UP), LEAST_EVERY_MS));
        bars.push(memoryBar(role, { mean_mb: mean, mb_per_hour: perHour, error }, long));
        return [role, { mean_mb: round(mean), mb_per_hour: round(perHour), error: round(error) }];
      }),
    ),
    descriptors = Object.fromEntries(
      roles.map((role) => {
        const of = settled(
            perMoment(s.samples.filter((x) => x.role === role)).map((p) => ({ ...p, value: 0 })),
            WARM_UP,
          ),
          half = Math.ceil(of.length / 2),
          open = of.map((p) => p.descriptors),
          first = quantile(open.slice(0, half), 0.5),
          last = quantile(open.slice(half), 0.5);
        // Medians: those that a desktop's tasks need for a moment come and go.
        bar(`descriptors of ${role}`, last - first, GOAL.descriptors, steady);
        return [role, { first, last, most: Math.max(...open) }];
      }),
    ),
    [journal, frames, index] = (['journal', 'frames', 'index'] as const).map((what) => growth(s.folder, what));
  bar('journal bytes a step, end against middle', journal!.ratio, GOAL.growth, steady);
  bar('frame bytes a step, end against middle', frames!.ratio, GOAL.growth, steady);
  const p99 = lateBy(s.delays, 0.99);
  timeBar('event loop of the daemon, p99 ms', p99, GOAL.delayMs);
  const own = s.ownLate.length > 0 ? lateBy(s.ownLate, 0.99) : undefined;
  if (own !== undefined)
    timeBar('event loop of the daemon without waiting for a processor, p99 ms of all moments', own, GOAL.delayMs);
  const answer = spread(s.answers.map((a) => a.ms)),
    drawn = s.drawn.length > 0 ? spread(s.drawn) : undefined;
  timeBar('answers to the window, p99 ms', answer.p99, GOAL.answerMs);
  if (drawn) timeBar('pictures of the pages, p99 ms', drawn.p99, GOAL.drawnMs);
  return {
    minutes: round(s.minutes),
    others: round(s.others),
    looks: s.looks,
    steps: s.folder.at(-1)?.steps ?? 0,
    memory,
    descriptors,
    descriptors_gained: gained(s.held),
    bytes_per_step: { journal: journal!.perStep, frames: frames!.perStep, index: index!.perStep },
    event_loop_ms: {
      p99: round(p99),
      moments_p99: round(lateBy(s.late, 0.99)),
      ...(own === undefined ? {} : { own_moments_p99: round(own) }),
      worst_seconds_p99: quantile(
        s.late.map((l) => lateBy([l], 0.99)),
        0.99,
      ),
      max: Math.max(0, ...s.late.map((l) => l.length)),
    },
    answer_ms: { ...answer, by_question: byQuestion(s.answers) },
    ...(drawn ? { drawn_ms: drawn } : {}),
    course: courseOf(s),
    bars,
  };
}
const spread = (ms: readonly number[]): Spread => ({ p50: round(quantile(ms, 0.5)), p99: round(quantile(ms, 0.99)) });
/** Whether a question takes longer as the run grows. */
function byQuestion(answers: readonly Answer[]): Record<string, AnswerCourse> {
  return Object.fromEntries(
    [...new Set(answers.map((a) => a.question))].map((question) => {
      const ms = answers.filter((a) => a.question === question).map((a) => a.ms),
        third = Math.ceil(ms.length / 3);
      return [
        question,
        { ...spread(ms), first_third: spread(ms.slice(0, third)), last_third: spread(ms.slice(-third)) },
      ];
    }),
  );
}
/** The ms within which this share of them is: counts of 0 to 1 ms, 1 to 2 ms …, second by second. */
function lateBy(seconds: readonly (readonly number[])[], share: number): number {
  const longest = Math.max(0, ...seconds.map((s) => s.length)),
    counts = Array.from({ length: longest }, (_, i) => seconds.reduce((sum, s) => sum + (s[i] ?? 0), 0)),
    most = share * counts.reduce((a, b) => a + b, 0);
  let seen = 0;
  return counts.findIndex((n) => n > 0 && (seen += n) >= most) + 1;
}
function courseOf(s: Soaked): Record<string, number>[] {
  const began = s.samples[0]?.at ?? 0,
    by = new Map<number, Record<string, number>>();
  for (const role of new Set(s.samples.map((x) => x.role)))
    for (const p of perMoment(s.samples.filter((x) => x.role === role))) {
      const minute = Math.floor((p.at - began) / 60_000),
        line = by.get(minute) ?? { minute };
      line[role] = Math.round(p.rssMb);
      by.set(minute, line);
    }
  for (const l of s.inside) {
    const line = by.get(Math.floor((l.at - began) / 60_000));
    if (line) Object.assign(line, { 'daemon heap': Math.round(l.heapMb), 'daemon buffers': Math.round(l.outsideMb) });
  }
  return [...by.values()].sort((a, b) => a['minute']! - b['minute']!);
}

/** All processes of a role together, at each moment. */
function perMoment(of: readonly Sample[]): Sample[] {
  const by = new Map<number, Sample>();
  for (const s of of) {
    const t = by.get(s.at);
    by.set(s.at, t ? { ...t, rssMb: t.rssMb + s.rssMb, descriptors: t.descriptors + s.descriptors } : s);
  }
  return [...by.values()];
}

/** Bytes that a step costs in the second half, and against the first: a journal grows as it did, frames no faster. */
function growth(
  folder: readonly Folder[],
  what: 'journal' | 'frames' | 'index',
): { readonly perStep: number; readonly ratio: number } {
  const of = settled(folder, WARM_UP),
    middle = of[Math.floor(of.length / 2)],
    cost = (a: Folder | undefined, b: Folder | undefined): number =>
      a && b && b.steps > a.steps ? (b[what] - a[what]) / (b.steps - a.steps) : NaN,
    perStep = cost(middle, of.at(-1)),
    before = cost(of[0], middle);
  return { perStep: round(perStep), ratio: before > 0 ? perStep / before : 0 };
}
const round = (x: number): number => Math.round(x * 100) / 100;

function gained(held: Soaked['held']): Record<string, number> {
  const half = Math.ceil(held.length / 2),
    kinds = [...new Set(held.flatMap((h) => Object.keys(h)))],
    median = (of: Soaked['held'], kind: string): number =>
      quantile(
        of.map((h) => h[kind] ?? 0),
        0.5,
      ),
    more = kinds.map((k) => [k, median(held.slice(half), k) - median(held.slice(0, half), k)] as const);
  return Object.fromEntries(more.filter(([, n]) => n > 0));
}
