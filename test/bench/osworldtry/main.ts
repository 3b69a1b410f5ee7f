import { openEvaluators } from '../../../runtime/tasks/index.js';
import { runOnDesktops } from '../osworld/desktops.js';
import { madeFiles } from '../osworld/world.js';
const e = (await openEvaluators())!;
const made = await madeFiles(e);
const ids = process.argv.slice(3);
await runOnDesktops(process.argv[2]!, { evaluators: e, made, ids, screens: '/tmp/osworld/screens', onTask: (t) => console.log(JSON.stringify(t)) });
process.exit(0);
