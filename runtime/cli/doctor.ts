import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parseRunText, type RunConfig } from '../config/index.js';
import { StudioError } from '../domain/index.js';
import { locate } from '../run/locate.js';
import { machineChecks } from '../service/checks.js';
import { thisBundle } from '../service/engines.js';
import { checkTasks, costLines, runChecks, type RunChecks } from '../service/runChecks/index.js';
import { asCalled } from './called.js';
import { allowMachine, type Options } from './options.js';
import { print, printJson } from './output.js';

/** A check as the command prints it. */
interface Row {
  readonly what: string;
  readonly ok: boolean;
  readonly needed: boolean;
  readonly found: string;
  readonly remedy: string | undefined;
}
const rowsOf = (checks: RunChecks['checks']): Row[] =>
  checks.map((c) => ({
    what: c.name,
    ok: c.ok,
    needed: c.level === 'required',
    found: c.detail,
    remedy: c.remedy === '' ? undefined : c.remedy,
  }));

/** `doctor [--run run.json]`: exit code 1 when a run cannot start here. */
export async function doctor(o: Options): Promise<number> {
  allowMachine(o);
  const file = o['run'];
  if (typeof file !== 'string') {
    const rows = rowsOf(await machineChecks(thisBundle()));
    show(o, rows, () => rows);
    return verdict(rows);
  }
  const notes: string[] = [],
    config = await runFile(file, (note) => notes.push(note));
  const [machine, tasks, run] = await Promise.all([
    machineChecks(thisBundle(), config),
    checkTasks(config),
    runChecks(config, process.cwd()),
  ]);
  const rows = rowsOf([...machine, ...tasks, ...run.checks]),
    ok = verdict(rows) === 0;
  show(o, rows, () => ({ ok, checks: rows, notes, ...(run.update ? { update: run.update } : {}) }));
  if (!o['json']) {
    for (const note of notes) print(`! ${note}\n`);
    if (run.update) print(['', 'What an update costs', ...costLines(run.update).map((l) => `  ${l}`), ''].join('\n'));
  }
  return ok ? 0 : 1;
}

async function runFile(file: string, onNote: (note: string) => void): Promise<RunConfig> {
  const text = await readFile(file, 'utf8').catch((e: Error) => {
    throw new StudioError('config.invalid', `${file} cannot be read: ${e.message}`, 'Give an existing run file.', {
      cause: e,
    });
  });
  return locate(parseRunText(text, file, {}, onNote), [dirname(resolve(file)), process.cwd()]);
}

const verdict = (rows: readonly Row[]): number => (rows.some((c) => c.needed && !c.ok) ? 1 : 0);

function show(o: Options, rows: readonly Row[], json: () => unknown): void {
  if (o['json']) {
    printJson(json());
    return;
  }
  const width = Math.max(20, ...rows.map((c) => c.what.length));
  for (const c of rows)
    print(
      `${c.ok ? '✓' : c.needed ? '✗' : '!'} ${c.what.padEnd(width)} ${c.found}${c.ok || !c.remedy ? '' : `\n  ${' '.repeat(width)} → ${asCalled(c.remedy)}`}\n`,
    );
}
