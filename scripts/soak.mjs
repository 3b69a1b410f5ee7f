// `npm run soak -- --minutes M [--json FILE]`: bundles test/soak and runs it against the bundle in dist/.
import { prepareE2e } from './e2e.mjs';
import { runBundled } from './lib/bundled.mjs';

if (!process.argv.includes('--no-window')) await prepareE2e();
await runBundled({ soak: 'test/soak/main.ts', probe: 'test/soak/probe.ts' }, 'soak');
