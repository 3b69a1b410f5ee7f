// `npm run setup`: everything but the desktops' image: packages, bundle.
import { ensureBuilt } from './lib/ensure.mjs';
import { requireNode } from './lib/system.mjs';

requireNode();
await ensureBuilt();
