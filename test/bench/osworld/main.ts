/**
 * `npm run bench:osworld [-- --quick] [--tasks DIR]… [--json FILE] [--most N] [--ids A,B] [--newer] [--solvable] [--provider docker] [--preset] [--screens DIR]`: what
 * OSWorld's tasks are judged to be here and what they cost. `--quick` needs no image: agreement of our metrics with
 * OSWorld's, every task of the folders judged on made desktops, and what real desktops answered judged again. Without it
 * the tasks that run here are set up on real desktops, judged as they then are, and solved where there is a script;
 * `--record FILE` keeps what the desktops answered; `--newer` takes the newer generation of task files, from PyPI;
 * `--provider docker` takes desktops in Docker, and looks at the browser's own sandbox there;
 * `--preset` runs preset `osworld` from end to end with a tiny model instead (preset.ts).
 */
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { installEvaluators, metricWorkers, openEvaluators } from '../../../runtime/tasks/index.js';
import { osworldExamples } from '../../helpers/tasks/osworld.js';
import { finish } from '../lib/report.js';
import { agreementTable, compareAll, incomplete, notCompared } from './agreement.js';
import { barsOf, rowsOf, type Measured } from './figures.js';
import { browserSandbox } from './browser.js';
import { runOnDesktops, type DesktopTask, type LeftOut } from './desktops.js';
import { judgeFolder, type JudgedTask } from './judged.js';
import { newerExamples } from './newer.js';
import { presetCloses } from './preset.js';
import { packStates, unpackStates, type Contents, type RecordedTask } from './recorded.js';
import { replayStates, type ReplayedTask } from './replayed.js';
import { whyUntouched } from './untouched.js';
import { madeFiles } from './world.js';

const args = process.argv.slice(2),
  quick = args.includes('--quick'),
  valuesOf = (name: string): string[] => args.flatMap((a, i) => (a === name && args[i + 1] ? [args[i + 1]!] : [])),
  most = Number(valuesOf('--most')[0] ?? Infinity),
  ids = valuesOf('--ids')[0]?.split(','),
  solvable = args.includes('--solvable'),
  provider = valuesOf('--provider')[0] === 'docker' ? 'docker' : 'local',
  states = resolve(valuesOf('--record')[0] ?? 'test/bench/results/osworld/states.json.gz');
const say = (line: string): void => void process.stderr.write(`${line}\n`);

await installEvaluators({ full: true, onLine: say });
const evaluators = (await openEvaluators())!,
  metrics = metricWorkers({ file: resolve('dist/runtime.js') }),
  made = await madeFiles(evaluators),
  folders =
    valuesOf('--tasks').length > 0
      ? valuesOf('--tasks')
      : [await (args.includes('--newer') ? newerExamples(evaluators) : osworldExamples())];

if (args.includes('--preset')) {
  const { rows, bars } = await presetCloses(folders[0]!, evaluators, say);
  finish('osworld', rows, bars, valuesOf('--json')[0], []);
  for (const b of bars)
    process.stdout.write(`${b.holds ? 'holds ' : 'MISSED'}  ${b.name} = ${b.value} (goal ${b.goal})\n`);
  process.exit(bars.every((b) => b.holds) ? 0 : 1);
}
const agreement = solvable ? [] : await compareAll(evaluators, () => undefined),
  disagreements = agreement.filter((a) => !a.agrees);
for (const [what, names] of [
  ['without all kinds of candidates', incomplete()],
  ['not compared', notCompared(evaluators)],
] as const)
  if (!solvable && names.length > 0) say(`metrics ${what}: ${names.join(', ')}`);
say(
  `${agreement.length} candidates of ${new Set(agreement.map((a) => a.metric)).size} metrics, ${disagreements.length} disagreements`,
);

const again = replayAll();
const judged: JudgedTask[] = [],
  desktops: DesktopTask[] = [],
  leftOut: LeftOut[] = [],
  recorded: RecordedTask[] = [],
  files: Contents = new Map();
await mkdir(dirname(states), { recursive: true });
for (const dir of folders) {
  if (!solvable) judged.push(...(await judgeFolder(dir, { evaluators, metrics, made, onTask: (t) => tell(t) })));
  if (!quick) {
    const ran = await runOnDesktops(dir, {
      evaluators,
      made,
      most,
      ...(ids ? { ids } : {}),
      solvable,
      provider,
      screens: valuesOf('--screens')[0],
      files,
      onTask: (t, kept) => {
        recorded.push(kept);
        say(
          `${t.folder}/${t.id.slice(0, 8)} set up ${t.setUp ? seconds(t.setupMs) : `no${t.lacks ? `: not ${t.lacks} in front but ${JSON.stringify(t.windows)}` : ''}`}, judged ${t.reward ?? `no: ${t.error ?? ''}`}${t.solved ? `, solved ${JSON.stringify(t.solved)}` : ''}`,
        );
      },
    });
    desktops.push(...ran.tasks);
    leftOut.push(...ran.leftOut);
  }
  if (!quick && valuesOf('--record').length > 0) await writeFile(states, packStates(recorded, files));
}
const replayed = await again,
  browsers = quick || provider === 'local' ? [] : [await browserSandbox('none'), await browserSandbox('internet')];

/** What real desktops answered, judged again beside the made ones: the evaluators have a worker for each core. */
async function replayAll(): Promise<ReplayedTask[]> {
  if (!quick || !existsSync(states)) return [];
  const recordedStates = unpackStates(await readFile(states)),
    onTask = (t: ReplayedTask): void => {
      if (t.reward !== t.recorded)
        say(`${t.folder}/${t.id.slice(0, 8)} ${t.what}: ${t.recorded} on its desktop, ${t.reward ?? t.why ?? ''} now`);
    },
    all = folders.map((dir) => replayStates(dir, recordedStates, { evaluators, metrics, made, onTask }));
  return (await Promise.all(all)).flat();
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
function tell(t: JudgedTask): void {
  if (!t.judged) say(`${t.id}${t.live ? ' (live web)' : ''}: ${t.why ?? ''}`);
}

const measured: Measured = {
  judged,
  candidates: agreement.length,
  disagreements: disagreements.length,
  replayed,
  desktops,
  leftOut: ids || solvable || Number.isFinite(most) ? [] : leftOut,
  browsers,
};
for (const t of desktops.filter((d) => d.reward === 1))
  say(
    `nothing done, and judged 1 by ${t.judges?.join(', ') ?? ''}: ${t.folder}/${t.id} (${whyUntouched(t.id) ?? 'WHY IS NOT KNOWN'})`,
  );
const json = valuesOf('--json')[0];
finish('osworld', rowsOf(measured), barsOf(measured), json, []);
for (const b of barsOf(measured))
  process.stdout.write(
    `${b.holds ? 'holds ' : 'MISSED'}  ${b.name} = ${Number(b.value.toPrecision(4))} ${b.unit} (goal ${b.goal})\n`,
  );
if (json && quick)
  await writeFile(
    json.replace(/\.json$/, '.agreement.md'),
    `# Our metrics and OSWorld's\n\nWritten by \`npm run bench:osworld -- --quick --json FILE\`: ${evaluators.place.name} ${evaluators.place.version}, ${agreement.length} crafted candidates.\n\n${agreementTable(agreement)}\n`,
  );
// Workers rest for a while before they end by themselves.
process.exit(disagreements.length > 0 ? 1 : 0);
