import { StudioError } from '../domain/index.js';
import { thisBundle } from '../service/engines.js';
import { evaluateRun, type Evaluated } from '../run/evaluateRun.js';
import { allowMachine, numberOption, textOption, type Options } from './options.js';
import { setOption, splitOption } from './split.js';
import { runFolder } from '../run/runFolders.js';
import { evaluationText, onTemplates } from '../domain/evaluationInterval.js';
import { rateText } from '../domain/stats.js';
import { printable, printableLine } from '../domain/terminalText.js';

/** What says more of a measurement without a run, and nothing of a run's own. */
const WITHOUT_RUN = [
  'policy',
  'out',
  'tasks',
  'assets',
  'image',
  'imageExtra',
  'screen',
  'network',
  'maxSteps',
  'taskTimeout',
  'desktops',
  'model',
  'coordinates',
];

/** `evaluate RUN`, or `evaluate --policy P --out DIR`. */
export async function evaluate(run: string | undefined, o: Options): Promise<number> {
  const given = WITHOUT_RUN.filter((k) => o[k] !== undefined);
  if (run !== undefined && given.length === 0) return evaluateCheckpoint(run, o);
  if (run === undefined && o['policy'] !== undefined && o['out'] !== undefined && o['random'] !== true)
    return (await import('./evaluatePolicy.js')).evaluatePolicy(o);
  const dashed = (k: string): string => `--${k.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)}`;
  throw new StudioError(
    'config.invalid',
    run !== undefined
      ? `${given.map(dashed).join(', ')}: not for a run, which is measured on its own tasks.`
      : o['random'] === true
        ? '--random is for a checkpoint of a run.'
        : 'Neither a run nor --policy with --out is given.',
    '`evaluate RUN` measures a checkpoint on the tasks of its evaluations, `evaluate --policy P --tasks T --out DIR` any model on any tasks.',
  );
}

/** Episodes of one checkpoint; the run itself is only read. */
async function evaluateCheckpoint(name: string, o: Options): Promise<number> {
  const dir = runFolder(String(o['runs'] ?? 'runs'), name),
    split = splitOption(o);
  allowMachine(o);
  const abort = new AbortController(),
    tty = process.stderr.isTTY;
  process.once('SIGINT', () => {
    abort.abort();
  });
  const point = await evaluateRun({
    dir,
    version: numberOption(o, 'checkpoint', 0),
    episodes: numberOption(o, 'episodes'),
    split,
    set: setOption(o),
    families: textOption(o, 'families')?.split(','),
    sampled: o['sampled'] === true,
    blind: o['blind'] === true,
    random: o['random'] === true,
    entry: thisBundle(),
    signal: abort.signal,
    provider: o['provider'] as 'auto' | undefined,
    onProgress: (p) => {
      if (tty) process.stderr.write(`\r\x1b[2K${p.done} of ${p.episodes} episodes`);
    },
    onNote: (text) => process.stderr.write(`${tty ? '\r\x1b[2K' : ''}${printable(text)}\n`),
  });
  if (tty) process.stderr.write('\r\x1b[2K');
  print(point, o['json'] === true);
  return 0;
}

function print(p: Evaluated, json: boolean): void {
  if (json) {
    process.stdout.write(JSON.stringify(p, null, 2) + '\n');
    return;
  }
  process.stdout.write(
    `success ${evaluationText(p.split, p)} of ${p.episodes} episodes${onTemplates(p.split, p)}${p.trained ? ' on tasks that are trained (a folder has none held out)' : p.set === 'dev' ? ' on tasks for tuning' : ''}, v${p.version}${p.errors ? `, ${p.errors} errors` : ''}\n`,
  );
  if (p.infeasible.episodes > 0)
    process.stdout.write(
      `infeasible tasks ${rateText(p.infeasible.successes, p.infeasible.episodes)} of ${p.infeasible.episodes}\n`,
    );
  for (const [f, x] of Object.entries(p.perFamily))
    process.stdout.write(`  ${printableLine(f.padEnd(24))} ${rateText(x.successes, x.episodes)}\n`);
}
