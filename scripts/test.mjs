// `npm test [-- VITEST ARGS]`: sets the machine up as far as it may (system packages, Docker engine, packages, bundle,
// desktop image), then runs every layer.
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { ensureBuilt } from './lib/ensure.mjs';
import { prepareE2e } from './e2e.mjs';
import { DOCKER_PACKAGES, LOCAL_PACKAGES, ensureDocker, ensurePackages, requireNode } from './lib/system.mjs';

requireNode();
const missing = ensurePackages([...LOCAL_PACKAGES, ...DOCKER_PACKAGES]);
if (missing.length)
  console.error(
    `Not installed, so the tests that need them will be skipped: ${missing.join(' ')} (install them as root to run everything).`,
  );
await ensureBuilt();
const docker = await ensureDocker();
const run = (...args) =>
  new Promise((done) => {
    spawn(process.execPath, args, { stdio: 'inherit' })
      .once('error', () => done(1))
      .once('close', (code) => done(code ?? 1));
  });
const report = '.cache/test-report.json';
mkdirSync('.cache', { recursive: true });
rmSync(report, { force: true });
let status = 0;
try {
  // Both forms of the desktop are built here, where progress is seen, so that no test waits for them; and the
  // end-to-end rig beside them.
  const rig = prepareE2e();
  await run('--enable-source-maps', 'dist/runtime.js', 'desktop', 'build', '--provider', 'local');
  if (docker.ok) await run('--enable-source-maps', 'dist/runtime.js', 'desktop', 'build', '--provider', 'docker');
  await rig;
  status = await run(
    'node_modules/vitest/vitest.mjs',
    'run',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
    ...process.argv.slice(2),
  );
} finally {
  await docker.stop();
}
console.log(counts());
process.exit(status);

/**
 * `N passed, N failed, N skipped`. A file that fails outside its tests, and any other reason for a bad exit code,
 * counts as one failure.
 */
function counts() {
  let r;
  try {
    r = JSON.parse(readFileSync(report, 'utf8'));
  } catch {
    return '0 passed, 1 failed, 0 skipped';
  }
  const broken = r.testResults.filter(
    (f) => f.status === 'failed' && !f.assertionResults.some((t) => t.status === 'failed'),
  ).length;
  return `${r.numPassedTests} passed, ${Math.max(r.numFailedTests + broken, status === 0 ? 0 : 1)} failed, ${r.numPendingTests + r.numTodoTests} skipped`;
}
