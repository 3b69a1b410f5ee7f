import type { Audit } from './auditor.js';
import type { Cost } from './inFlight.js';

/** A run goes on so many ms after a fault has ended, or was found where it does not end. */
export const RECOVERY_GOAL_MS = 5000;

/** A fault that was made. */
export interface Made extends Cost {
  readonly kind: string;
  readonly ms: number;
  /** Share of the processors that others used meanwhile. */
  readonly others: number;
}
/** Where others use more of the processors, how long a recovery takes is theirs to say: it is reported and not judged. */
export const BUSY = 0.5;
const judged = (m: Made): boolean => m.others <= BUSY;

/** Of the faults that were made while the machine was ours. */
export interface RecoveryBar {
  readonly name: 'recovery_max_ms';
  /** None where nothing was judged. */
  readonly value?: number;
  readonly goal: number;
  /** How many faults it is of: the others were made while others used the machine. */
  readonly judged: number;
  /** Never where nothing was judged. */
  readonly ok: boolean;
  /** Why nothing was judged. */
  readonly words?: string;
}
export interface ChaosReport {
  readonly kills: number;
  readonly seed: number;
  readonly provider: string;
  readonly lost: number;
  readonly duplicated: number;
  readonly skipped: number;
  readonly trained_twice: number;
  readonly redone_steps: number;
  /** Steps of rollouts that were under way at faults: `redone_steps` must not be more, at any fault. */
  readonly in_flight_steps: number;
  readonly corrupt: number;
  readonly orphans: number;
  /** From the end of a fault, or from its detection, to the first step that was accepted after it. */
  readonly recovery_max_ms: number;
  readonly bars: readonly RecoveryBar[];
  readonly steps: number;
  readonly versions: number;
  /** Events that the window was told, each once and in order. */
  readonly events: number;
  readonly by_kind: Readonly<
    Record<string, { readonly n: number; readonly recovery_max_ms: number; readonly redone_steps: number }>
  >;
  /** Faults whose place was not come to in time; others were made instead. */
  readonly missed: readonly string[];
  /** Kinds that cannot be made here, and why not. */
  readonly impossible: Readonly<Record<string, string>>;
  /** What is wrong. */
  readonly problems: readonly string[];
  /** Recoveries over the goal, of those that are judged. */
  readonly slow: readonly string[];
}

/** What `made` and the audits, of runs that were stopped, before any damage and at the end, come to. */
export function reportOf(o: {
  readonly made: readonly Made[];
  readonly stopped: readonly Audit[];
  readonly strict: Audit | undefined;
  readonly last: Audit | undefined;
  readonly orphans: readonly string[];
  readonly problems: readonly string[];
  readonly rest: Pick<ChaosReport, 'seed' | 'provider' | 'steps' | 'versions' | 'events' | 'missed' | 'impossible'>;
}): ChaosReport {
  const { made, stopped, strict, last, orphans } = o,
    closed = last ? [...stopped, last] : stopped,
    all = strict ? [...closed, strict] : closed,
    sum = (of: readonly number[]): number => of.reduce((a, b) => a + b, 0),
    recovery = slowest(made);
  const problems = [
    ...o.problems,
    ...(strict?.problems ?? []).map((p) => `before any damage: ${p}`),
    ...closed.flatMap((a) => a.problems),
    ...orphans.map((what) => `left behind: ${what}`),
    ...made
      .filter((m) => m.redone > m.inFlight)
      .map((m) => `${m.kind}: ${m.redone} steps are done again, and ${m.inFlight} were in flight`),
  ];
  const slow = made
    .filter((m) => judged(m) && m.ms > RECOVERY_GOAL_MS)
    .map((m) => `${m.kind}: the run went on after ${Math.round(m.ms)} ms, over the goal of ${RECOVERY_GOAL_MS}`);
  return {
    kills: made.length,
    lost: sum(all.map((a) => a.lost)),
    duplicated: sum(all.map((a) => a.duplicated)),
    // What is under way is no skipped group yet.
    skipped: sum(closed.map((a) => a.skipped)),
    trained_twice: sum(all.map((a) => a.trained_twice)),
    redone_steps: sum(made.map((m) => m.redone)),
    in_flight_steps: sum(made.map((m) => m.inFlight)),
    corrupt: sum(closed.map((a) => a.corrupt)),
    orphans: orphans.length,
    recovery_max_ms: recovery,
    bars: [recoveryBar(made)],
    by_kind: Object.fromEntries(
      [...new Set(made.map((d) => d.kind))].sort().map((k) => {
        const of = made.filter((d) => d.kind === k);
        return [k, { n: of.length, recovery_max_ms: slowest(of), redone_steps: sum(of.map((m) => m.redone)) }];
      }),
    ),
    ...o.rest,
    problems,
    slow,
  };
}

const slowest = (of: readonly Made[]): number => Math.round(Math.max(0, ...of.map((m) => m.ms)));

function recoveryBar(made: readonly Made[]): RecoveryBar {
  const of = made.filter(judged),
    bar = { name: 'recovery_max_ms', goal: RECOVERY_GOAL_MS, judged: of.length } as const,
    value = slowest(of);
  return of.length > 0
    ? { ...bar, value, ok: value <= RECOVERY_GOAL_MS }
    : { ...bar, ok: false, words: `No recovery was judged: ${whyNot(made)}.` };
}
function whyNot(made: readonly Made[]): string {
  if (made.length === 0) return 'no fault was made';
  const shares = made.map((m) => Math.round(100 * m.others));
  return `at each of the ${made.length} faults others used more than ${100 * BUSY} % of the processors (${Math.min(...shares)} to ${Math.max(...shares)} %)`;
}
