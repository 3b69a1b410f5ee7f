import type { Candidate, Ranked } from '../../../runtime/annotations/queue.js';

/** The order of review by its definition: all of them are sorted, and each is told why. */
export function rankedAtOnce(all: readonly Candidate[], infeasible: (family: string) => boolean): Ranked[] {
  const turns = new Map<string, number>(),
    ranked: { r: Ranked; born: number }[] = [];
  for (const c of [...all].sort((a, b) => b.born - a.born)) {
    const f = familyOf(all, c.family),
      { level, why } = classOf(c, f, infeasible(c.family)),
      key = `${level} ${c.reviewed ? 1 : 0} ${c.family}`,
      turn = turns.get(key) ?? 0;
    turns.set(key, turn + 1);
    const rate = f.n > 0 ? f.won / f.n : 0,
      priority = level * 1000 + Math.max(0, 990 - 10 * turn) + (1 - rate) * 9;
    ranked.push({
      r: { rollout: c.rollout, priority: c.reviewed ? priority - 10_000 : priority, why, reviewed: c.reviewed },
      born: c.born,
    });
  }
  return ranked.sort((a, b) => b.r.priority - a.r.priority || b.born - a.born).map((x) => x.r);
}

interface Figures {
  readonly n: number;
  readonly won: number;
  readonly shortest: number;
}
function familyOf(all: readonly Candidate[], family: string): Figures {
  const mine = all.filter((c) => c.family === family),
    counting = mine.filter((c) => c.counts);
  return {
    n: counting.length,
    won: counting.filter((c) => c.success).length,
    shortest: Math.min(Infinity, ...mine.filter((c) => c.success).map((c) => c.steps)),
  };
}

const steps = (n: number, what: string): string => `${n} ${what}${n === 1 ? '' : 's'}`;
function classOf(c: Candidate, f: Figures, infeasible: boolean): { level: number; why: string } {
  const said: string[] = [];
  if (!c.success) {
    if (c.gaveUp && !infeasible) said.push('it was given up as impossible, though the task can be done');
    if (!c.gaveUp && infeasible) said.push('the task cannot be done, but it was not given up');
    if (c.truncated) said.push(`it ran out of steps (${c.steps})`);
    const more = said.length > 0 ? `; ${said.join('; ')}` : '';
    if (f.won === 0) return { level: 5, why: `Nobody has solved this task yet: ${steps(f.n, 'failure')}${more}.` };
    if (f.won <= 3) return { level: 4, why: `Hardly ever solved: ${f.won} of ${f.n}${more}.` };
    const words = said.join('; ');
    return {
      level: c.gaveUp !== infeasible ? 3 : c.truncated ? 2 : 0,
      why: words ? `${words[0]!.toUpperCase()}${words.slice(1)}.` : `Failed; ${f.won} of ${f.n} of its kind succeeded.`,
    };
  }
  if (c.steps >= f.shortest * 1.5 && c.steps >= f.shortest + 2)
    return { level: 1, why: `Succeeded in ${c.steps} steps; the shortest success of its kind takes ${f.shortest}.` };
  return { level: 0, why: `Succeeded in ${steps(c.steps, 'step')}.` };
}
