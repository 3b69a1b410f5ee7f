import { resolve } from 'node:path';
import { metricWorkers, openEvaluators } from '../../../runtime/tasks/index.js';
import { StudioError } from '../../../runtime/domain/index.js';
import { judgeFolder } from './judged.js';
import { madeFiles } from './world.js';
const e = await openEvaluators();
if (!e) throw new StudioError('config.invalid', 'no evaluators', 'install');
const made = await madeFiles(e);
const all = await judgeFolder(process.argv[2]!, {
  evaluators: e,
  metrics: metricWorkers({ file: resolve('dist/runtime.js') }),
  made,
  onTask: (t) => {
    if (!t.judged && !t.account) console.log(t.id, t.live, t.why?.slice(0, 200));
  },
});
const need = all.filter((t) => !t.account);
console.log(
  need.length,
  need.filter((t) => t.judged).length,
  need.filter((t) => t.judged && t.rewards!.gold === 1 && t.rewards!.missing === 0 && t.rewards!.broken === 0).length,
);
console.log(
  'missing 1',
  all.filter((t) => t.rewards?.missing === 1).map((t) => t.id),
  'broken>0',
  all.filter((t) => (t.rewards?.broken ?? 0) > 0).map((t) => t.id),
);
console.log(
  all
    .sort((a, b) => b.ms - a.ms)
    .slice(0, 8)
    .map((t) => [t.id, t.ms]),
);
process.exit(0);
