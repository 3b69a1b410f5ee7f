import { resolve } from 'node:path';
import { toRunError } from '../domain/index.js';
import * as m from '../protocol/methods.js';
import type { ComparedRun, Comparison, RunPath } from '../protocol/types.js';
import { compareConfigs, comparedParts, flatConfig, type CompareQuery } from '../queries/compare.js';
import { schemas, type Handlers } from './params.js';
import { markOf } from './readers.js';
import type { Studio } from './studio.js';

/** Each run opens an index, in a thread of its own: more at once would only wait for a processor. */
const AT_ONCE = 3;
/** Answers kept of runs that nobody writes. */
const KEEP = 32;

interface Compared {
  readonly parts: Omit<ComparedRun, 'group'>;
  readonly config: ReadonlyMap<string, string>;
}

/** run/compare. */
export function compareHandlers(h: Handlers, s: Studio): void {
  const kept = new Map<RunPath, { readonly mark: string; readonly answer: Compared }>();
  const one = async (run: RunPath, q: CompareQuery): Promise<Compared> => {
    const dir = resolve(run),
      active = s.session?.run === dir,
      mark = active ? '' : `${await markOf(dir)} ${q.window} ${q.maxPoints}`,
      known = kept.get(dir);
    if (known && !active && known.mark === mark) return known.answer;
    return s.read(dir, async (r) => {
      const [parts, summary] = await Promise.all([comparedParts(r.reader, r.facts, q), s.summary(dir)]);
      const { id, name, createdAt, state, seed, version, rollouts } = summary,
        answer: Compared = {
          parts: { run, id, name, createdAt, state, seed, version, rollouts, ...parts },
          config: flatConfig(r.reader.meta.config),
        };
      kept.delete(dir);
      if (!r.alive) kept.set(dir, { mark, answer });
      for (const oldest of kept.keys()) {
        if (kept.size <= KEEP) break;
        kept.delete(oldest);
      }
      return answer;
    });
  };
  h.on(m.compareRuns, schemas.compareRuns, async ({ runs, window = 64, maxPoints = 300 }): Promise<Comparison> => {
    const found = new Map<number, Compared>(),
      missing: Comparison['missing'][number][] = [],
      todo = [...new Set(runs)].entries();
    const worker = async (): Promise<void> => {
      for (const [i, run] of todo)
        try {
          found.set(i, await one(run, { window, maxPoints }));
        } catch (e) {
          missing.push({ run, error: toRunError(e) });
        }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    const all = [...found].sort(([a], [b]) => a - b).map(([, c]) => c),
      { differences, groups } = compareConfigs(all.map((c) => c.config));
    return { runs: all.map((c, i) => ({ ...c.parts, group: groups[i]! })), config: differences, missing };
  });
}
