import { chooseProvider, specOf } from '../cluster/provide.js';
import type { Desktop } from '../cluster/types.js';
import { parseRunFile } from '../config/index.js';
import { toRunError, type ProviderChoice } from '../domain/index.js';
import { MiniwobEngine, MiniwobSource, openPages, type CheckRow } from '../tasks/index.js';

/** The finding about a page of MiniWoB++ that was opened. */
export interface PageRow extends Pick<CheckRow, 'id' | 'status' | 'needs' | 'error'> {
  /** Its instruction at seed 1. */
  readonly utterance?: string;
}

/**
 * Opens every page of a copy of MiniWoB++ in the browser of a desktop and begins an episode there. Rejects with
 * `task.invalid` where there is no copy, and with `desktop.*` where no desktop can be had.
 */
export async function checkPages(o: {
  readonly dir: string;
  readonly provider: ProviderChoice;
  readonly signal: AbortSignal;
  readonly onRow?: (row: PageRow, index: number, of: number) => void;
}): Promise<PageRow[]> {
  const pages = await openPages(o.dir),
    source = new MiniwobSource(pages),
    engine = new MiniwobEngine(pages),
    { desktops } = parseRunFile({ tasks: { suite: 'miniwob', dir: o.dir }, desktops: { provider: o.provider } }),
    provider = await chooseProvider(desktops);
  const rows: PageRow[] = [];
  try {
    let desktop: Desktop | undefined;
    for (const f of source.families) {
      o.signal.throwIfAborted();
      desktop ??= await provider.create(specOf(desktops), o.signal);
      const task = source.task(f.id, 1);
      let row: PageRow;
      try {
        await engine.setup(task, desktop, o.signal);
        row = { id: f.id, status: 'runnable', needs: [], utterance: engine.instruction(task, desktop) };
      } catch (e) {
        o.signal.throwIfAborted();
        const error = toRunError(e);
        row = { id: f.id, status: 'unsupported', needs: [error.message], error };
        // A broken page's desktop is not used for the next one.
        await provider.destroy(desktop);
        desktop = undefined;
      }
      rows.push(row);
      o.onRow?.(row, rows.length, source.families.length);
    }
    return rows;
  } finally {
    await provider.dispose();
  }
}
