import { RunReader } from '../data/store/runStore.js';

/** ms that a run has taken: the newest that its metrics say, and what it journalled of its time since. */
export async function usedMs(run: RunReader): Promise<number> {
  const [row] = await run.index.query(
    "SELECT COALESCE(MAX(value), 0) AS ms, COALESCE(MAX(seq), 0) AS seq FROM metrics WHERE name = 'run.elapsedMs'",
    [],
  );
  let used = Number(row?.['ms'] ?? 0);
  for await (const e of run.events(Number(row?.['seq'] ?? 0))) {
    const { type, elapsedMs } = e as { readonly type: string; readonly elapsedMs?: unknown };
    if (type === 'run.time' && typeof elapsedMs === 'number') used = Math.max(used, elapsedMs);
  }
  return used;
}

/** The same of a run folder that nobody has open here, in minutes. */
export async function usedMinutes(dir: string): Promise<number> {
  const run = await RunReader.open(dir, { index: 'local' });
  try {
    return (await usedMs(run)) / 60_000;
  } finally {
    await run.close();
  }
}
