import type { RunReader } from '../data/store/runStore.js';
import type { AnnotationMarks } from '../domain/index.js';
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

/**
 * The order of review: failures of families never solved, then of families hardly ever solved, "cannot be done" against
 * what the task says, those that ran out of steps, long successes, the rest. Within a class families take turns, newest
 * first. Those already reviewed come last. Pure.
 */
export function rankForReview(all: readonly Candidate[], infeasible: (family: string) => boolean): Ranked[] {
  const families = new Map<string, { n: number; won: number; shortest: number }>();
  for (const c of all) {
    let f = families.get(c.family);
    if (!f) families.set(c.family, (f = { n: 0, won: 0, shortest: Infinity }));
    if (c.counts) {
      f.n++;
      if (c.success) f.won++;
    }
    if (c.success) f.shortest = Math.min(f.shortest, c.steps);
  }
  const turns = new Map<string, number>(),
    ranked: { r: Ranked; born: number }[] = [];
  for (const c of [...all].sort((a, b) => b.born - a.born)) {
    const f = families.get(c.family)!,
      { level, why } = classOf(c, f, infeasible(c.family)),
      key = `${level} ${c.reviewed ? 1 : 0} ${c.family}`,
      turn = turns.get(key) ?? 0;
    turns.set(key, turn + 1);
    const rate = f.n > 0 ? f.won / f.n : 0,
      priority = level * 1000 + Math.max(0, 990 - 10 * turn) + (1 - rate) * 9;
    ranked.push({
      r: { rollout: c.rollout, priority: c.reviewed ? priority - reviewedBelow : priority, why, reviewed: c.reviewed },
      born: c.born,
    });
  }
  return ranked.sort((a, b) => b.r.priority - a.r.priority || b.born - a.born).map((x) => x.r);
}

function classOf(
  c: Candidate,
  f: { readonly n: number; readonly won: number; readonly shortest: number },
  infeasible: boolean,
): { level: number; why: string } {
  const said: string[] = [];
  if (!c.success) {
    if (c.gaveUp && !infeasible) said.push('it was given up as impossible, though the task can be done');
    if (!c.gaveUp && infeasible) said.push('the task cannot be done, but it was not given up');
    if (c.truncated) said.push(`it ran out of steps (${c.steps})`);
    const more = said.length > 0 ? `; ${said.join('; ')}` : '';
    if (f.won === 0) return { level: 5, why: `Nobody has solved this task yet: ${counted(f.n, 'failure')}${more}.` };
    if (f.won <= FEW) return { level: 4, why: `Hardly ever solved: ${f.won} of ${f.n}${more}.` };
    const disagrees = c.gaveUp !== infeasible;
    return {
      level: disagrees ? 3 : c.truncated ? 2 : 0,
      why: said.length > 0 ? sentence(said.join('; ')) : `Failed; ${f.won} of ${f.n} of its kind succeeded.`,
    };
  }
  if (c.steps >= f.shortest * LONG && c.steps >= f.shortest + 2)
    return { level: 1, why: `Succeeded in ${c.steps} steps; the shortest success of its kind takes ${f.shortest}.` };
  return { level: 0, why: `Succeeded in ${counted(c.steps, 'step')}.` };
}
const sentence = (s: string): string => `${s[0]!.toUpperCase()}${s.slice(1)}.`;

/**
 * Finished trajectories that a person may want to see: no evaluations (nothing is to be learnt from them) and no
 * scripted demonstrations.
 */
export async function candidates(
  run: RunReader,
  marks: ReadonlyMap<string, AnnotationMarks>,
  family?: string,
): Promise<Candidate[]> {
  const [ids = [], families = [], outcomes = [], truncated = [], steps = [], provenance = [], born = [], gaveUp = []] =
    await run.index.columns(
      `SELECT r.id, r.family, r.outcome, r.truncated, r.steps, r.provenance, r.born, EXISTS(SELECT 1 FROM gave_up g WHERE g.rollout = r.id) FROM rollouts r WHERE r.outcome IN ('success', 'failure') AND r.provenance IN ('rollout', 'imported', 'human')${family === undefined ? '' : ' AND r.family = ?'}`,
      family === undefined ? [] : [family],
    );
  return ids.map((v, i): Candidate => {
    const rollout = String(v),
      m = marks.get(rollout);
    return {
      rollout,
      family: String(families[i]),
      success: (m?.outcome ?? outcomes[i]) === 'success',
      truncated: truncated[i] === 1,
      steps: Number(steps[i]),
      counts: provenance[i] !== 'human',
      gaveUp: gaveUp[i] === 1,
      born: Number(born[i]),
      reviewed: m?.reviewed === true,
    };
  });
}
