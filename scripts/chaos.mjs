// `npm run chaos -- --kills N --seed S [--json FILE]`: bundles test/chaos and runs it against the bundle in dist/.
import { runBundled } from './lib/bundled.mjs';

await runBundled({ chaos: 'test/chaos/main.ts', hook: 'test/chaos/hook.ts' }, 'chaos');
