import { DEFAULT_IMAGE, StudioError, isProviderChoice, providerWords } from '../domain/index.js';
import { counted } from '../domain/counted.js';
import { printableLine } from '../foreign/terminalText.js';
import { allImageContents, imageContents } from '../service/desktopImage.js';
import { checkPages, type PageRow } from '../service/pageCheck.js';
import {
  checkFolder,
  deskSuite,
  downloadsOf,
  fetchAssets,
  formatCheck,
  isMiniwob,
  openAssets,
  openEvaluators,
  readFolder,
} from '../tasks/index.js';
import { asCalled } from './called.js';
import { imageOf } from './desktop.js';
import { onInterrupt } from './interrupt.js';
import type { Options } from './options.js';
import { print, printJson, statusLine, tell } from './output.js';

/** `tasks check DIR`: a row a task; exit code 0 when the folder could be read, 1 when a file in it is invalid. */
export async function check(dir: string, o: Options): Promise<number> {
  if (await isMiniwob(dir)) return checkMiniwob(dir, o);
  const assets = typeof o['assets'] === 'string' ? await openAssets(o['assets']) : undefined;
  const image = await imageContents(imageOf(o));
  const rows = await checkFolder(dir, {
    image,
    assets,
    evaluators: await openEvaluators(),
    images: await allImageContents(),
  });
  if (rows.length === 0) throw noTasks(dir);
  if (o['json']) printJson(rows);
  else print(asCalled(`${formatCheck(rows)}\n`));
  return rows.some((r) => r.error) ? 1 : 0;
}

const noTasks = (dir: string): StudioError =>
  new StudioError('task.invalid', `${dir} holds no task files.`, 'Give a folder with OSWorld task files (*.json).');

/** Every page of a copy of MiniWoB++, opened in the browser of a desktop; exit code 1 when one does not work. */
async function checkMiniwob(dir: string, o: Options): Promise<number> {
  const provider = String(o['provider'] ?? 'auto');
  if (!isProviderChoice(provider))
    throw new StudioError('config.invalid', `--provider ${provider}: unknown`, `Use ${providerWords}.`);
  const stop = onInterrupt('Stopping the check.'),
    line = statusLine();
  try {
    const rows = await checkPages({
      dir,
      provider,
      signal: stop.signal,
      onRow: (row, index, of) => {
        if (!o['json']) print(asCalled(`${pageLine(row)}\n`));
        else line.show(`${index} of ${of}`);
      },
    });
    const broken = rows.filter((r) => r.error).length;
    line.clear();
    if (o['json']) printJson({ tasks: rows });
    else print(`\n${rows.length} pages: ${rows.length - broken} runnable, ${broken} not\n`);
    return broken > 0 ? 1 : 0;
  } finally {
    stop.off();
    line.clear();
  }
}
const pageLine = (r: PageRow): string =>
  printableLine(`${r.id.padEnd(36)}  ${r.utterance ?? `cannot run: ${r.error?.message ?? ''}`}`);
/** `tasks fetch DIR`: a mirror of what the tasks download; exit code 1 when a file could not be had, or a task read. */
export async function fetchFiles(dir: string, o: Options): Promise<number> {
  const tasks = await readFolder(dir, { image: await imageContents(DEFAULT_IMAGE) }),
    invalid = tasks.flatMap(({ row }) => row.error ?? []);
  if (tasks.length === 0) throw noTasks(dir);
  // Nobody knows what these download.
  for (const e of invalid) tell(`${printableLine(e.message)}\n`);
  const urls = downloadsOf(tasks),
    stop = onInterrupt('Stopping: what has arrived is kept.'),
    line = statusLine();
  const report = await fetchAssets(urls, {
    into: String(o['into']),
    mirror: typeof o['mirror'] === 'string' ? o['mirror'] : undefined,
    allowPrivate: o['allowPrivate'] === true,
    signal: stop.signal,
    onWait: () => tell('Another command fetches into this folder; waiting for it.\n'),
    onFile: (f, done, of) => {
      if (f.state === 'failed') {
        line.clear();
        tell(`${printableLine(`${f.url}: ${f.error ?? ''}`)}\n`);
      }
      line.show(`${done} of ${of} files`);
    },
  }).finally(() => {
    stop.off();
    line.clear();
  });
  if (o['json']) printJson({ ...report, invalid: invalid.length });
  else
    print(
      `${report.files.length} files, ${(report.bytes / 1e6).toFixed(1)} MB: ${report.fetched} fetched, ${report.there} there already, ${report.failed} failed${invalid.length > 0 ? `; invalid: ${counted(invalid.length, 'task file')}` : ''}\n`,
    );
  return report.failed > 0 || invalid.length > 0 ? 1 : 0;
}

/** `tasks list`: the families of the built-in suite. */
export async function list(o: Options): Promise<number> {
  const families = deskSuite().families;
  if (o['json']) printJson(families);
  else
    for (const f of families)
      print(
        `${f.id.padEnd(28)} ${f.split.padEnd(8)} ${String(f.steps).padStart(2)} steps  ${f.apps.join(', ')}${f.infeasible ? '  (infeasible)' : ''}\n`,
      );
  return 0;
}
