// `npm run pictures [-- --run FOLDER]`: takes README.md's pictures in a real VS Code workbench, of a run folder or, without
// one, of the sample run.
import { prepareE2e } from './e2e.mjs';
import { runBundled } from './lib/bundled.mjs';

await prepareE2e();
await runBundled({ pictures: 'test/pictures/main.ts' }, 'pictures');
