import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { StudioError, isRunName } from '../domain/index.js';
import { importInto, preview, type ImportSource } from '../interchange/importer.js';
import type { ImportProgress } from '../interchange/importReport.js';
import { newTarget, type ImportTarget } from '../interchange/importTarget.js';
import { coordinateModes, importFormats } from '../interchange/types.js';
import type { CoordinateMode, ImportFormat } from '../interchange/types.js';
import { importLines, previewLines } from '../interchange/words.js';
import { thisBundle } from '../service/engines.js';
import { asCalled } from './called.js';
import type { Options } from './options.js';
import { runFolder } from '../run/runFolders.js';
import { onInterrupt } from './interrupt.js';
import { print, printJson, statusLine, tell } from './output.js';

export function coordinates(v: unknown): CoordinateMode | undefined {
  if (v !== undefined && !(coordinateModes as readonly string[]).includes(String(v)))
    throw new StudioError(
      'config.invalid',
      `--coordinates ${String(v)}: unknown`,
      `Choose one of ${coordinateModes.join(', ')}.`,
    );
  return v as CoordinateMode | undefined;
}

/**
 * `import PATH --into RUN | --new NAME`: says what is there, then imports it; Ctrl-C stops between trajectories, and
 * the same command goes on.
 */
export async function importTrajectories(path: string, o: Options): Promise<number> {
  const source = sourceOf(path, o),
    json = o['json'] === true,
    dry = o['dryRun'] === true,
    runs = String(o['runs'] ?? 'runs');
  const target = dry && o['into'] === undefined && o['new'] === undefined ? undefined : targetOf(runs, o);
  const stop = onInterrupt('Stopping after the current picture; nothing of an unfinished trajectory is kept.');
  try {
    const before = await preview(source, target?.create ? undefined : target?.dir, stop.signal),
      { signal } = stop;
    if (signal.aborted) return 130;
    if (dry || before.trajectories === 0) {
      if (json) printJson({ dryRun: dry, ...before });
      else print(`${previewLines(before).join('\n')}\n${dry ? '' : 'Nothing was imported.\n'}`);
      return before.trajectories > 0 ? 0 : 1;
    }
    if (!json) tell(`${previewLines(before).join('\n')}\n`);
    if (target!.create) await mkdir(dirname(target!.dir), { recursive: true });
    const line = statusLine(json);
    const report = await importInto(source, target!, {
      pool: o['pool'] !== false,
      of: before.trajectories + before.problemCount,
      signal,
      onProgress: (p) => {
        line.show(progressText(p));
      },
    }).finally(() => {
      line.clear();
    });
    if (json) printJson(report);
    else print(`${importLines(report).join('\n')}\n`);
    if (report.stopped && !json)
      print(
        asCalled(
          `Stopped. Go on: dart-studio import ${path} --into ${report.imported > 0 || !target!.create ? target!.dir : `… (nothing was imported yet: --new ${String(o['new'])})`}\n`,
        ),
      );
    return report.stopped ? 130 : report.imported + report.already + report.duplicateCount > 0 ? 0 : 1;
  } finally {
    stop.off();
  }
}

const progressText = (p: ImportProgress): string =>
  `importing ${p.done} of ${p.of} · ${p.imported} in · ${p.frames} frames${p.problems > 0 ? ` · ${p.problems} problems` : ''}`;

function sourceOf(path: string, o: Options): ImportSource {
  const format = String(o['format'] ?? 'auto'),
    verdict = o['verdict'];
  if (format !== 'auto' && !(importFormats as readonly string[]).includes(format))
    throw new StudioError('config.invalid', `--format ${format}: unknown`, `Choose auto, ${importFormats.join(', ')}.`);
  if (verdict !== undefined && verdict !== 'success' && verdict !== 'failure')
    throw new StudioError('config.invalid', `--verdict ${String(verdict)}: unknown`, 'Choose success or failure.');
  const mode = coordinates(o['coordinates']);
  return {
    path: resolve(path),
    format: format as ImportFormat | 'auto',
    options: {
      tasks: typeof o['tasks'] === 'string' ? resolve(o['tasks']) : undefined,
      verdict,
      coordinates: mode,
    },
  };
}

function targetOf(runs: string, o: Options): ImportTarget {
  const { into } = o,
    name = o['new'];
  if ((typeof into === 'string') === (typeof name === 'string'))
    throw new StudioError(
      'config.invalid',
      'import needs a run to import into: --into RUN, or --new NAME for a new one.',
      'Give one of the two; --dry-run alone only looks.',
    );
  if (typeof into === 'string') return { dir: runFolder(runs, into), index: 'local', entry: thisBundle() };
  if (!isRunName(String(name)))
    throw new StudioError(
      'config.invalid',
      `--new ${String(name)}: a name is letters, digits, spaces, '.', '_' and '-'`,
      'Choose another name.',
    );
  const dir = resolve(runs, String(name));
  if (existsSync(dir))
    throw new StudioError(
      'config.invalid',
      `There is already a run ${String(name)}.`,
      `To import into it: --into ${String(name)}`,
    );
  return { ...newTarget(dir, String(name)), index: 'local', entry: thisBundle() };
}
