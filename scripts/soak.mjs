// `npm run soak -- --minutes M [--json FILE]`: bundles test/soak and runs it against the bundle in dist/.
import { runBundled } from './lib/bundled.mjs';

await runBundled({ soak: 'test/soak/main.ts', probe: 'test/soak/probe.ts' }, 'soak');
