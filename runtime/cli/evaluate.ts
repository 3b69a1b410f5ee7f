import { StudioError } from '../domain/index.js';
import { thisBundle } from '../service/engines.js';
import { evaluateCheckpoint, type Evaluated } from '../run/evaluateCheckpoint.js';
import { onInterrupt } from './interrupt.js';
import { allowMachine, countOption, dashed, textOption, type Options } from './options.js';
import { print, printJson, statusLine, tell } from './output.js';
import { setOption, skipOption, splitOption } from './split.js';
import { runFolder } from '../run/runFolders.js';
import { evaluationText, onTemplates } from '../domain/evaluationInterval.js';
import { rateText } from '../domain/stats.js';

/** Options of a measurement without a run, which a run's own does not take. */
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
  if (run !== undefined && given.length === 0) return measureRun(run, o);
  if (run === undefined && o['policy'] !== undefined && o['out'] !== undefined && o['random'] !== true)
    return (await import('./evaluatePolicy.js')).evaluatePolicy(o);
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
async function measureRun(name: string, o: Options): Promise<number> {
  const dir = runFolder(String(o['runs'] ?? 'runs'), name),
    split = splitOption(o),
    version = countOption(o, 'checkpoint', 0),
    episodes = countOption(o, 'episodes');
  allowMachine(o);
  const stop = onInterrupt('Stopping: an evaluation that is cut off is not counted.'),
    line = statusLine();
  const point = await evaluateCheckpoint({
    dir,
    version,
    episodes,
    split,
    set: setOption(o),
    skip: skipOption(o),
    families: textOption(o, 'families')?.split(','),
    sampled: o['sampled'] === true,
    blind: o['blind'] === true,
    random: o['random'] === true,
    entry: thisBundle(),
    signal: stop.signal,
    provider: o['provider'] as 'auto' | undefined,
    onProgress: (p) => {
      line.show(`${p.done} of ${p.episodes} episodes`);
    },
    onNote: (text) => {
      line.clear();
      tell(`${text}\n`);
    },
  }).finally(() => {
    stop.off();
    line.clear();
  });
  show(point, o['json'] === true);
  return 0;
}

function show(p: Evaluated, json: boolean): void {
  if (json) {
    printJson(p);
    return;
  }
  print(
    `success ${evaluationText(p.split, p)} of ${p.episodes} episodes${onTemplates(p.split, p)}${p.trained ? ' on tasks that are trained (a folder has none held out)' : p.set === 'dev' ? ' on tasks for tuning' : ''}, v${p.version}${p.errors ? `, ${p.errors} errors` : ''}\n`,
  );
  if (p.infeasible.episodes > 0)
    print(`infeasible tasks ${rateText(p.infeasible.successes, p.infeasible.episodes)} of ${p.infeasible.episodes}\n`);
  for (const [f, x] of Object.entries(p.perFamily)) print(`  ${f.padEnd(24)} ${rateText(x.successes, x.episodes)}\n`);
}
