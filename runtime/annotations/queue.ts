import type { RunReader } from '../data/store/runStore.js';
import type { AnnotationMarks } from '../domain/index.js';
import { Turns } from '../concurrency/turns.js';
import { counted } from '../domain/counted.js';

/** The parts of a finished trajectory that the queue needs. */
export interface Candidate {
  readonly rollout: string;
  readonly family: string;
  /** The outcome, as corrected where a person did so. */
  readonly success: boolean;
  readonly truncated: boolean;
  readonly steps: number;
  /** The policy's own, or another's whose task is the question: counts for how often a task is solved. A person's demonstration does not. */
  readonly counts: boolean;
  /** Ended by saying that the task cannot be done. */
  readonly gaveUp: boolean;
  /** Grows with time. */
  readonly born: number;
  readonly reviewed: boolean;
}
export interface Ranked {
  readonly rollout: string;
  readonly priority: number;
  readonly why: string;
  readonly reviewed: boolean;
}

/** Successes so few that each failure's lesson is worth more than another success. */
const FEW = 3;
/** A success so much longer than the shortest of its family has something to trim. */
const LONG = 1.5;
const reviewedBelow = 10_000;
/** Trajectories that are looked at between two looks at the clock. */
const STEP = 1024;

export interface RankOptions {
  /** Most of the answer; default: all. */
  readonly limit?: number;
  /** Whether those already reviewed are in it; default: they are. */
  readonly reviewed?: boolean;
}

/**
 * The order of review: failures of families never solved, then of families hardly ever solved, "cannot be done" against
 * what the task says, those that ran out of steps, long successes, the rest. Within a class families take turns, newest
 * first. Those already reviewed come last. No more is put in order than is asked for, and the event loop goes on
 * turning; told newest first, the trajectories need not be sorted.
 */
export async function rankForReview(
  all: readonly Candidate[],
  infeasible: (family: string) => boolean,
  { limit = all.length, reviewed = true }: RankOptions = {},
): Promise<Ranked[]> {
  const turns = new Turns(),
    heads = new Heads(),
    ranked: Ranked[] = [];
  for (const f of (await familiesOf(all, infeasible, turns)).values())
    for (const [c, line] of f.lines.entries()) {
      const isReviewed = c % 2 === 1;
      if (!line || (isReviewed && !reviewed)) continue;
      if (turns.over) await turns.next();
      heads.add(new FamilyLine(f, c >> 1, isReviewed, newestFirst(line)));
    }
  while (ranked.length < limit) {
    if (ranked.length % STEP === 0 && turns.over) await turns.next();
    const line = heads.first;
    if (!line) break;
    const { newest, family, priority, isReviewed } = line;
    ranked.push({ rollout: newest.rollout, priority, why: whyOf(newest, family), reviewed: isReviewed });
    line.take();
    heads.moved();
  }
  return ranked;
}

/** A family, and its trajectories by their class: at twice its level, one more where they are reviewed. */
interface Family {
  n: number;
  won: number;
  shortest: number;
  readonly infeasible: boolean;
  readonly lines: (Placed[] | undefined)[];
}
/** A trajectory with its place among all: of those born together, the first one comes first. */
interface Placed {
  readonly c: Candidate;
  readonly place: number;
}

async function familiesOf(
  all: readonly Candidate[],
  infeasible: (family: string) => boolean,
  turns: Turns,
): Promise<ReadonlyMap<string, Family>> {
  const families = new Map<string, Family>();
  for (const [i, c] of all.entries()) {
    if (i % STEP === 0 && turns.over) await turns.next();
    let f = families.get(c.family);
    if (!f)
      families.set(c.family, (f = { n: 0, won: 0, shortest: Infinity, infeasible: infeasible(c.family), lines: [] }));
    if (c.counts) {
      f.n++;
      if (c.success) f.won++;
    }
    if (c.success) f.shortest = Math.min(f.shortest, c.steps);
  }
  for (const [place, c] of all.entries()) {
    if (place % STEP === 0 && turns.over) await turns.next();
    const f = families.get(c.family)!;
    (f.lines[2 * levelOf(c, f) + (c.reviewed ? 1 : 0)] ??= []).push({ c, place });
  }
  return families;
}

const before = (a: Placed, b: Placed): number => b.c.born - a.c.born || a.place - b.place;
const newestFirst = (line: Placed[]): readonly Placed[] =>
  line.some((x, i) => i > 0 && before(line[i - 1]!, x) > 0) ? line.sort(before) : line;

/** Trajectories of one family and class, newest first: so they follow each other in the order of review, too. */
class FamilyLine {
  readonly family: Family;
  readonly isReviewed: boolean;
  readonly #level: number;
  readonly #all: readonly Placed[];
  #taken = 0;

  constructor(family: Family, level: number, isReviewed: boolean, all: readonly Placed[]) {
    this.family = family;
    this.isReviewed = isReviewed;
    this.#level = level;
    this.#all = all;
  }
  get over(): boolean {
    return this.#taken === this.#all.length;
  }
  get newest(): Candidate {
    return this.#all[this.#taken]!.c;
  }
  get priority(): number {
    const { n, won } = this.family,
      rate = n > 0 ? won / n : 0,
      priority = this.#level * 1000 + Math.max(0, 990 - 10 * this.#taken) + (1 - rate) * 9;
    return this.isReviewed ? priority - reviewedBelow : priority;
  }
  take(): void {
    this.#taken++;
  }
  /** Whether its newest comes before that of another line. */
  precedes(l: FamilyLine): boolean {
    return (l.priority - this.priority || before(this.#all[this.#taken]!, l.#all[l.#taken]!)) < 0;
  }
}

/** Lines as a heap: the one whose newest comes first is at its top. */
class Heads {
  readonly #heap: FamilyLine[] = [];

  get first(): FamilyLine | undefined {
    return this.#heap[0];
  }
  add(l: FamilyLine): void {
    const heap = this.#heap;
    let i = heap.push(l) - 1;
    for (let up = (i - 1) >> 1; i > 0 && l.precedes(heap[up]!); up = (i - 1) >> 1) {
      heap[i] = heap[up]!;
      i = up;
    }
    heap[i] = l;
  }
  /** The first one has another newest now, or none. */
  moved(): void {
    const heap = this.#heap,
      l = heap[0]!.over ? heap.pop()! : heap[0]!;
    if (l.over) return;
    let i = 0;
    for (;;) {
      let down = 2 * i + 1;
      if (down >= heap.length) break;
      if (down + 1 < heap.length && heap[down + 1]!.precedes(heap[down]!)) down++;
      if (!heap[down]!.precedes(l)) break;
      heap[i] = heap[down]!;
      i = down;
    }
    heap[i] = l;
  }
}

const isLong = (c: Candidate, f: Family): boolean => c.steps >= f.shortest * LONG && c.steps >= f.shortest + 2;

function levelOf(c: Candidate, f: Family): number {
  if (c.success) return isLong(c, f) ? 1 : 0;
  if (f.won === 0) return 5;
  if (f.won <= FEW) return 4;
  if (c.gaveUp !== f.infeasible) return 3;
  return c.truncated ? 2 : 0;
}

function whyOf(c: Candidate, f: Family): string {
  if (c.success)
    return isLong(c, f)
      ? `Succeeded in ${c.steps} steps; the shortest success of its kind takes ${f.shortest}.`
      : `Succeeded in ${counted(c.steps, 'step')}.`;
  const said: string[] = [];
  if (c.gaveUp && !f.infeasible) said.push('it was given up as impossible, though the task can be done');
  if (!c.gaveUp && f.infeasible) said.push('the task cannot be done, but it was not given up');
  if (c.truncated) said.push(`it ran out of steps (${c.steps})`);
  const more = said.length > 0 ? `; ${said.join('; ')}` : '';
  if (f.won === 0) return `Nobody has solved this task yet: ${counted(f.n, 'failure')}${more}.`;
  if (f.won <= FEW) return `Hardly ever solved: ${f.won} of ${f.n}${more}.`;
  return said.length > 0 ? sentence(said.join('; ')) : `Failed; ${f.won} of ${f.n} of its kind succeeded.`;
}
const sentence = (s: string): string => `${s[0]!.toUpperCase()}${s.slice(1)}.`;

/** Rollouts that are read at once. */
const PAGE = 10_000;

/**
 * Finished trajectories that a person may want to see, newest first: no evaluations (nothing is to be learnt from them)
 * and no scripted demonstrations.
 */
export async function candidates(
  run: RunReader,
  marks: ReadonlyMap<string, AnnotationMarks>,
  family?: string,
  page = PAGE,
): Promise<Candidate[]> {
  const out: Candidate[] = [],
    turns = new Turns(),
    ofFamily = family === undefined ? [] : [family];
  let behind: readonly [born: number, id: string] | undefined;
  for (;;) {
    const [
      ids = [],
      families = [],
      outcomes = [],
      truncated = [],
      steps = [],
      provenance = [],
      born = [],
      gaveUp = [],
    ] = await run.index.columns(
      `SELECT r.id, r.family, r.outcome, r.truncated, r.steps, r.provenance, r.born, EXISTS(SELECT 1 FROM gave_up g WHERE g.rollout = r.id) FROM rollouts r WHERE r.outcome IN ('success', 'failure') AND r.provenance IN ('rollout', 'imported', 'human')${family === undefined ? '' : ' AND r.family = ?'}${behind ? ' AND r.born <= ? AND (r.born < ? OR r.id > ?)' : ''} ORDER BY r.born DESC, r.id LIMIT ?`,
      [...ofFamily, ...(behind ? [behind[0], ...behind] : []), page],
    );
    for (const [i, v] of ids.entries()) {
      if (i % STEP === 0 && turns.over) await turns.next();
      const rollout = String(v),
        m = marks.get(rollout);
      out.push({
        rollout,
        family: String(families[i]),
        success: (m?.outcome ?? outcomes[i]) === 'success',
        truncated: truncated[i] === 1,
        steps: Number(steps[i]),
        counts: provenance[i] !== 'human',
        gaveUp: gaveUp[i] === 1,
        born: Number(born[i]),
        reviewed: m?.reviewed === true,
      });
    }
    const last = out.at(-1);
    if (!last || ids.length < page) return out;
    behind = [last.born, last.rollout];
  }
}
