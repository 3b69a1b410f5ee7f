// `npm run test:peers:vllm [-- --out FILE]`: a real vLLM on the processor as the rollout pool of a run; the runtime's own
// backend trains, publishes adapters to two such servers and acts on them. Writes test/peers/vllm/results, or FILE.
// Needs 6.5 GB of disk, 8 GB of memory, and PyPI the first time: ends with 75 where the packages cannot be had.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { bundled } from './lib/bundle.mjs';
import { ensureBuilt } from './lib/ensure.mjs';
import { stamp, stampFile } from './lib/stamp.mjs';

const { values: o } = parseArgs({ options: { out: { type: 'string' } } });
const folder = join(process.cwd(), 'test/peers/vllm'),
  venv = join(homedir(), '.cache', 'dart-studio', 'peers', 'vllm'),
  python = join(venv, 'bin', 'python'),
  result = o.out ?? join(folder, 'results', 'vllm.json'),
  scratch = mkdtempSync(join(tmpdir(), 'dart-vllm-'));
const UNAVAILABLE = 75;
const run = (file, ...argv) => {
  const { status } = spawnSync(file, argv, { stdio: 'inherit' });
  if (status !== 0) throw new Error(`${file} ${argv.join(' ')} ended with ${status}`);
};

/**
 * vLLM's build for processors is pinned to a build of torch that PyPI does not have; the ordinary one serves. So what it
 * needs is installed by our own list (requirements.txt), and the wheel itself without what it asks for. What an earlier
 * installation left half-way is begun anew.
 */
function environment() {
  const requirements = join(folder, 'requirements.txt'),
    wheel = readFileSync(join(folder, 'wheel.txt'), 'utf8').trim(),
    wanted = `${readFileSync(requirements, 'utf8')}${wheel}\n`,
    stamp = join(venv, 'installed.txt');
  if (existsSync(python) && existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  const pip = (...argv) => run(python, '-m', 'pip', 'install', '--quiet', '--retries', '7', ...argv);
  run('python3', '-m', 'venv', '--clear', venv);
  pip('-r', requirements);
  pip('--no-deps', wheel);
  writeFileSync(stamp, wanted);
}

/** Ctrl-C in a terminal reaches the driver too, which ends the servers it started: this waits for it. */
const drive = (driver) =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, ['--enable-source-maps', driver, python, result, join(scratch, 'work')], {
      stdio: 'inherit',
    });
    for (const s of ['SIGINT', 'SIGTERM'])
      process.on(s, () => {
        if (s === 'SIGTERM') child.kill(s);
      });
    child.on('exit', (code) => resolve(code ?? 1));
  });

let keep = false;
try {
  await ensureBuilt();
  let why;
  try {
    environment();
  } catch (e) {
    why = e;
  }
  if (why) {
    console.error(`vLLM cannot be installed: ${why.message}`);
    process.exitCode = UNAVAILABLE;
  } else {
    const made = stamp();
    process.exitCode = await drive(await bundled(join(folder, 'drive.ts'), 'vllm'));
    stampFile(result, made);
    keep = process.exitCode !== 0;
  }
} finally {
  if (keep) console.error(`The servers' logs are in ${scratch}.`);
  else rmSync(scratch, { recursive: true, force: true });
}
