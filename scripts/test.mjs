// `npm test [-- VITEST ARGS]`: sets the machine up as far as it may (system packages, Docker engine, packages, bundle, desktop image), then runs every layer.
import { spawnSync } from 'node:child_process';
import { ensureBuilt } from './lib/ensure.mjs';
import { DOCKER_PACKAGES, LOCAL_PACKAGES, ensureDocker, ensurePackages, requireNode } from './lib/system.mjs';

requireNode();
const missing = ensurePackages([...LOCAL_PACKAGES, ...DOCKER_PACKAGES]);
if (missing.length) console.error(`Not installed, so the tests that need them will be skipped: ${missing.join(' ')} (install them as root to run everything).`);
await ensureBuilt();
const docker = await ensureDocker();
const run = (...args) => spawnSync(process.execPath, args, { stdio: 'inherit' }).status ?? 1;
let status = 0;
try {
  // Both forms of the desktop are built here, where progress is seen, so that no test waits for them.
  run('--enable-source-maps', 'dist/runtime.js', 'desktop', 'build', '--provider', 'local');
  if (docker.ok) run('--enable-source-maps', 'dist/runtime.js', 'desktop', 'build', '--provider', 'docker');
  status = run('node_modules/vitest/vitest.mjs', 'run', ...process.argv.slice(2));
} finally { await docker.stop(); }
process.exit(status);
