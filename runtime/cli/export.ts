import { StudioError, type AnnotationFilter } from '../domain/index.js';
import { exportRun } from '../interchange/exporter.js';
import { exportFormats } from '../interchange/types.js';
import type { ExportFormat } from '../interchange/types.js';
import { exportLines } from '../interchange/words.js';
import { countOption, numberOption, refuseBeside } from './options.js';
import type { Options } from './options.js';
import { runFolder } from '../run/runFolders.js';
import { recordedView } from '../service/recordedView.js';
import { coordinates } from './import.js';
import { onInterrupt } from './interrupt.js';
import { print, printJson, statusLine } from './output.js';

/** Options that choose trajectories, or parts of them. */
const FILTERS = ['outcome', 'family', 'tag', 'reviewed', 'without', 'evaluations', 'asRecorded', 'split', 'seed'];

/** The options about annotations, as conditions. */
function annotationsOf(o: Options): AnnotationFilter {
  const tags = o['tag'] as unknown as readonly string[] | undefined,
    { without } = o,
    marks = typeof without === 'string' ? without.split(',').map((m) => m.trim()) : [];
  const unknown = marks.find((m) => m !== 'redundant' && m !== 'wrong');
  if (unknown !== undefined)
    throw new StudioError(
      'config.invalid',
      `--without ${unknown}: unknown`,
      'Choose redundant, wrong, or redundant,wrong.',
    );
  return {
    revised: o['asRecorded'] !== true,
    tags,
    reviewed: o['reviewed'] === true || undefined,
    ...(marks.length > 0 ? { without: marks as ('redundant' | 'wrong')[] } : {}),
  };
}

/**
 * `export RUN DIR --format F`: the run's finished trajectories in another format; the folder appears when all of it is
 * written.
 */
export async function exportTrajectories(run: string, dir: string, o: Options): Promise<number> {
  if (o['format'] === 'html') {
    refuseBeside(o, FILTERS, '--format html', 'A page shows the whole run, or with --rollout one trajectory as it is.');
    return (await import('./share.js')).exportPage(run, dir, o);
  }
  refuseBeside(o, ['rollout'], 'this format', '--rollout is for --format html.');
  const { format, outcome } = o,
    json = o['json'] === true,
    share = numberOption(o, 'split', 0);
  if (!(exportFormats as readonly unknown[]).includes(format))
    throw new StudioError(
      'config.invalid',
      `--format ${format === undefined ? 'is needed' : `${String(format)}: unknown`}`,
      `Choose one of ${[...exportFormats, 'html'].join(', ')}.`,
    );
  if (outcome !== undefined && outcome !== 'success' && outcome !== 'failure')
    throw new StudioError(
      'config.invalid',
      `--outcome ${String(outcome)}: unknown`,
      'Choose success or failure; without it both are exported.',
    );
  if (share !== undefined && (share <= 0 || share >= 1))
    throw new StudioError(
      'config.invalid',
      `--split ${share}: the share of the training part must be between 0 and 1`,
      'For example --split 0.9.',
    );
  const stop = onInterrupt('Stopping: an unfinished export is deleted.'),
    line = statusLine(json);
  try {
    const report = await exportRun(
      {
        run: runFolder(String(o['runs'] ?? 'runs'), run),
        to: dir,
        format: format as ExportFormat,
        signal: stop.signal,
        options: { coordinates: coordinates(o['coordinates']) ?? 'qwen25' },
        outcome,
        evaluations: o['evaluations'] === true,
        annotations: annotationsOf(o),
        family: typeof o['family'] === 'string' ? o['family'] : undefined,
        split: share === undefined ? undefined : { share, seed: countOption(o, 'seed', 0) ?? 1 },
        onProgress: (done, of) => {
          line.show(`exporting ${done} of ${of}`);
        },
      },
      recordedView,
    );
    line.clear();
    if (json) printJson(report);
    else print(`${exportLines(report).join('\n')}\n`);
    return 0;
  } finally {
    line.clear();
    stop.off();
  }
}
