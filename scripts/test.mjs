// `npm test [-- VITEST ARGS]`: sets the machine up as far as it may (system packages, Docker engine, packages, bundle,
// desktop image), then runs every layer. `npm test -- --prepare` only sets up.
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { relative } from 'node:path';
import { ensureBuilt } from './lib/ensure.mjs';
import { prepareE2e } from './e2e.mjs';
import {
  DOCKER_PACKAGES,
  LOCAL_PACKAGES,
  TORCH_PACKAGES,
  VENV_PACKAGES,
  ensureDocker,
  ensurePackages,
  requireNode,
} from './lib/system.mjs';

requireNode();
const missing = ensurePackages([...LOCAL_PACKAGES, ...DOCKER_PACKAGES, ...TORCH_PACKAGES, ...VENV_PACKAGES]);
if (missing.length)
  console.error(
    `Not installed, so the tests that need them will be skipped: ${missing.join(' ')} (install them as root to run everything).`,
  );
await ensureBuilt();
const docker = await ensureDocker();
process.once('SIGTERM', () => void docker.stop().finally(() => process.exit(143)));
const run = (...args) =>
  new Promise((done) => {
    spawn(process.execPath, args, { stdio: 'inherit' })
      .once('error', () => done(1))
      .once('close', (code) => done(code ?? 1));
  });
/**
 * How far back the tests behind the others stand, as `nice` counts: as far as the runs of a daemon do
 * (runtime/cli/lowerPriority.ts), which integration tests wait for, and no further: one that got nothing would run out of
 * time.
 */
const BEHIND = 10;
/** What Vitest reports of each of its runs; beside each, what it caught outside tests. */
const REPORTS = { rest: '.cache/test-report.json', behind: '.cache/test-report-behind.json' },
  caughtFile = (report) => report.replace('.json', '-caught.json');
const args = process.argv.slice(2),
  prepares = args.includes('--prepare');
mkdirSync('.cache', { recursive: true });
for (const report of Object.values(REPORTS))
  for (const file of [report, caughtFile(report)]) rmSync(file, { force: true });
let status = 0;
try {
  // Desktops are built here, where progress is seen, so that no test waits for them; and the end-to-end rig beside them.
  const rig = prepareE2e();
  const build = (...args) => run('--enable-source-maps', 'dist/runtime.js', 'desktop', 'build', ...args);
  const local = async () => {
    await build('--provider', 'local');
    await build('--provider', 'local', '--image', 'web');
  };
  await Promise.all([rig, local(), docker.ok ? build('--provider', 'docker') : undefined]);
  if (!prepares) status = await runTests();
} finally {
  await docker.stop();
}
if (prepares) process.exit();
const results = (args.length > 0 ? [REPORTS.rest] : Object.values(REPORTS)).map(readReport),
  result = {
    passed: results.reduce((n, r) => n + r.passed, 0),
    failed: results.flatMap((r) => r.failed),
    skipped: results.flatMap((r) => r.skipped),
  };
if (status !== 0 && result.failed.length === 0) result.failed.push(`Vitest ended with ${status}; its output says why`);
for (const name of result.skipped) console.log(`skipped: ${name}`);
if (!docker.ok) console.error(`No Docker engine: ${docker.why}`);
// CI runs everything or fails: a suite that skips itself there would go unseen.
if (process.env.DART_STUDIO_NO_SKIP && result.skipped.length > 0) {
  console.error('A skipped test fails this run (DART_STUDIO_NO_SKIP is set). Each prints the reason above.');
  status ||= 1;
}
if (result.failed.length > 0) status ||= 1;
// Last, where a log that was cut short still has it.
for (const what of result.failed) console.error(`failed: ${what}`);
console.log(`${result.passed} passed, ${result.failed.length} failed, ${result.skipped.length} skipped`);
process.exit(status);

/**
 * Unit tests, what else is apart, and pages need only processors, and the other layers often wait: both run at once,
 * those behind the others, whose desktops must not wait for them. Their browsers begin sessions of their own, and go
 * behind by themselves (test/helpers/pages/browser.ts).
 */
async function runTests() {
  if (args.length > 0) return vitest(REPORTS.rest, args).ended;
  const behind = vitest(REPORTS.behind, inProjects('unit', 'alone', 'apart', 'pages'), {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
    behind: BEHIND,
  });
  // Of a group of its own, it would outlive us.
  process.once('exit', () => killGroup(behind.pid)).once('SIGINT', () => process.exit(130));
  // On a terminal Vitest redraws its last lines; what comes between them would be overwritten.
  const lines = [];
  behind.stdout.setEncoding('utf8').on('data', (text) => {
    if (process.stdout.isTTY) lines.push(text);
    else process.stdout.write(text);
  });
  const rest = await vitest(REPORTS.rest, inProjects('integration', 'e2e')).ended,
    first = await behind.ended;
  process.stdout.write(lines.join(''));
  return rest || first;
}

function inProjects(...names) {
  return names.flatMap((name) => ['--project', name]);
}

function killGroup(leader) {
  try {
    process.kill(-leader, 'SIGTERM');
  } catch {
    // It has ended.
  }
}

function vitest(report, args, { behind, ...options } = { stdio: 'inherit' }) {
  const [program, ...first] =
    behind === undefined || process.platform === 'win32'
      ? [process.execPath]
      : ['scripts/lib/behind.sh', String(behind), process.execPath];
  const child = spawn(
    program,
    [
      ...first,
      'node_modules/vitest/vitest.mjs',
      'run',
      '--reporter=default',
      '--reporter=json',
      '--reporter=./scripts/lib/times.mjs',
      `--outputFile.json=${report}`,
      ...args,
    ],
    {
      ...options,
      env: {
        ...process.env,
        DART_STUDIO_CAUGHT: caughtFile(report),
        ...(behind === undefined ? {} : { DART_STUDIO_BEHIND: String(behind) }),
      },
    },
  );
  child.ended = new Promise((done) => child.once('error', () => done(1)).once('close', (code) => done(code ?? 1)));
  return child;
}

/** What Vitest reports: tests by their full names, those that failed with the beginning of why. */
function readReport(report) {
  const r = readJson(report);
  if (!r) return { passed: 0, failed: [`no report of ${report}`], skipped: [] };
  const failed = [],
    skipped = [];
  for (const f of r.testResults) {
    const file = relative(process.cwd(), f.name),
      failures = f.assertionResults.filter((t) => t.status === 'failed');
    for (const t of f.assertionResults)
      if (!['passed', 'failed'].includes(t.status)) skipped.push(`${file}: ${t.fullName}`);
    for (const t of failures) failed.push(`${file}: ${t.fullName}: ${beginning(t.failureMessages?.[0])}`);
    // Outside its tests.
    if (f.status === 'failed' && failures.length === 0) failed.push(`${file}: ${beginning(f.message)}`);
  }
  for (const e of readJson(caughtFile(report)) ?? []) failed.push(`outside any test: ${beginning(e)}`);
  return { passed: r.numPassedTests, failed, skipped };
}
function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}
function beginning(text) {
  return (text ?? '').split('\n').slice(0, 3).join(' ').slice(0, 400);
}
