/**
 * `npm run bench:osworld [-- --quick] [--tasks DIR]… [--most N] [--json FILE]`: what OSWorld's tasks are judged to be here
 * and what they cost. `--quick` needs no image: agreement of our metrics with OSWorld's, and every task of the folders
 * judged on made desktops. Without it the tasks that run here are set up on real desktops, too.
 */
import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { quantile } from '../../../runtime/domain/index.js';
import { installEvaluators, metricWorkers, openEvaluators } from '../../../runtime/tasks/index.js';
import { osworldExamples } from '../../helpers/tasks/osworld.js';
import { agreementTable, compareAll, incomplete, notCompared } from './agreement.js';
import { runOnDesktops, type DesktopTask } from './desktops.js';
import { judgeFolder, right, type JudgedTask } from './judged.js';
import { madeFiles } from './world.js';

/** OSWorld's fixed waits of one task, seconds: 60 after the reset, 20 before judging, 3 around the container; boot not counted. */
const OSWORLD_WAITS = 83;

const args = process.argv.slice(2),
  quick = args.includes('--quick'),
  valuesOf = (name: string): string[] => args.flatMap((a, i) => (a === name && args[i + 1] ? [args[i + 1]!] : [])),
  most = Number(valuesOf('--most')[0] ?? Infinity);
const say = (line: string): void => void process.stderr.write(`${line}\n`);

await installEvaluators({ full: true, onLine: say });
const evaluators = (await openEvaluators())!,
  metrics = metricWorkers({ file: resolve('dist/runtime.js') }),
  made = await madeFiles(evaluators),
  folders = valuesOf('--tasks').length > 0 ? valuesOf('--tasks') : [await osworldExamples()];

const agreement = await compareAll(evaluators, () => undefined),
  disagreements = agreement.filter((a) => !a.agrees);
say(
  `${agreement.length} candidates of ${new Set(agreement.map((a) => a.metric)).size} metrics, ${disagreements.length} disagreements`,
);

const judged: JudgedTask[] = [],
  desktops: DesktopTask[] = [];
for (const dir of folders) {
  judged.push(...(await judgeFolder(dir, { evaluators, metrics, made, onTask: (t) => tell(t) })));
  if (!quick)
    desktops.push(
      ...(await runOnDesktops(dir, {
        evaluators,
        made,
        most,
        onTask: (t) =>
          say(`${t.id} set up ${t.setUp ? seconds(t.setupMs) : (t.error ?? '')}, judged ${t.reward ?? 'no'}`),
      })),
    );
}
function tell(t: JudgedTask): void {
  if (!t.judged) say(`${t.id}${t.live ? ' (live web)' : ''}: ${t.why ?? ''}`);
}
const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

const due = judged.filter((t) => !t.account),
  atRest = due.filter((t) => !t.live),
  share = (all: readonly { readonly ok: boolean }[]): number =>
    all.length === 0 ? 0 : all.filter((x) => x.ok).length / all.length,
  overhead = desktops.filter((t) => t.setUp).map((t) => (t.resetMs + t.setupMs + t.judgeMs) / 1000);
const figures = {
  evaluators: `${evaluators.place.name} ${evaluators.place.version}`,
  tasks: judged.length,
  judged_share: share(due.map((t) => ({ ok: t.judged }))),
  judged_share_without_live_web: share(atRest.map((t) => ({ ok: t.judged }))),
  candidates_right: judged.filter(right).length,
  native_bridge_disagreements: disagreements.length,
  native_bridge_candidates: agreement.length,
  metrics_without_all_kinds: incomplete(),
  metrics_not_compared: notCompared(evaluators),
  ...(desktops.length === 0
    ? {}
    : {
        desktop_tasks: desktops.length,
        setup_share: share(desktops.map((t) => ({ ok: t.setUp }))),
        overhead_seconds_per_task_p50: quantile(overhead, 0.5),
        overhead_seconds_per_task_p95: quantile(overhead, 0.95),
        overhead_vs_osworld_waits: OSWORLD_WAITS / (quantile(overhead, 0.5) ?? Infinity),
        reset_p50_ms: quantile(
          desktops.map((t) => t.resetMs),
          0.5,
        ),
        do_nothing_successes: desktops.filter((t) => t.reward === 1).map((t) => t.id),
      }),
};
process.stdout.write(`${JSON.stringify(figures, null, 2)}\n`);
const json = valuesOf('--json')[0];
if (json) {
  const rows = judged.map(({ ms: _, ...t }) => t);
  await writeFile(json, `${JSON.stringify({ figures, judged: rows, desktops }, null, 1)}\n`);
  await writeFile(
    json.replace(/\.json$/, '.agreement.md'),
    `# Our metrics and OSWorld's\n\nWritten by \`npm run bench:osworld -- --quick --json FILE\`: ${figures.evaluators}, ${agreement.length} crafted candidates.\n\n${agreementTable(agreement)}\n`,
  );
}
// Workers rest for a while before they end by themselves.
process.exit(disagreements.length > 0 ? 1 : 0);
