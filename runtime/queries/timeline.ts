import type { RunReader } from '../data/store/runStore.js';
import type { PhaseSpan, RunTimeline } from '../protocol/types.js';

/** A process that ends and one that goes on at once leave no visible hole. */
const LEAST_OUTAGE_MS = 2000;

/** When each phase of a run began, and when nobody worked on it. */
export async function timelineOf(run: RunReader): Promise<RunTimeline> {
  const [phases, outages, measured] = await Promise.all([phasesOf(run), outagesOf(run), measuredOf(run)]);
  return { phases, outages, ...(measured ? { measured } : {}) };
}

/** A process that resumes a run counts from when its reinforcement learning begins. */
async function measuredOf(run: RunReader): Promise<RunTimeline['measured']> {
  const began = await run.index.query('SELECT queued, trained FROM runs WHERE queued IS NOT NULL ORDER BY rowid', []),
    newest = began.at(-1);
  if (!newest) return undefined;
  const { queued, trained } = newest;
  return {
    from: Number(queued),
    ...(typeof trained === 'number' ? { to: trained } : {}),
    resumed: began.length > 1,
  };
}

/** Phases by the records that they leave; one that left none did not happen or has not ended yet. */
async function phasesOf(run: RunReader): Promise<PhaseSpan[]> {
  const one = async (sql: string): Promise<number | undefined> => {
    const [row] = await run.index.query(sql, []),
      at = row?.['at'] ?? undefined;
    return at === undefined || at === null ? undefined : Number(at);
  };
  // The lessons are journalled when they end, with how long they took.
  const lesson = (source: string): Promise<number | undefined> =>
    one(
      `SELECT MIN(l.at - COALESCE((SELECT m.value FROM metrics m WHERE m.name = replace(l.name, '.loss', '.ms') AND m.seq = l.seq), 0)) AS at FROM metrics l WHERE l.name IN ('${source}.loss', '${source}.part.loss')`,
    );
  const [reading, demonstrations, warmStart, training] = await Promise.all([
    lesson('reading'),
    one("SELECT MIN(COALESCE(started_at, ended_at)) AS at FROM rollouts WHERE provenance = 'oracle'"),
    lesson('warm-start'),
    one('SELECT queued AS at FROM runs WHERE queued IS NOT NULL ORDER BY rowid LIMIT 1'),
  ]);
  const found: readonly (readonly [PhaseSpan['phase'], number | undefined])[] = [
    ['reading', reading],
    ['demonstrations', demonstrations],
    ['warm start', warmStart],
    ['training', training],
  ];
  return found
    .flatMap(([phase, from]): PhaseSpan[] => (from === undefined ? [] : [{ phase, from }]))
    .sort((a, b) => a.from - b.from);
}

/** Times between the last record of one process and the first of the next, however the first one ended. */
async function outagesOf(run: RunReader): Promise<{ from: number; to: number }[]> {
  const opened = await run.index.query('SELECT before, at FROM runs ORDER BY rowid', []);
  return opened.slice(1).flatMap((o) => {
    const from = Number(o['before'] ?? 0),
      to = Number(o['at']);
    return from > 0 && to - from >= LEAST_OUTAGE_MS ? [{ from, to }] : [];
  });
}
