// `npm run test:peers:tensorboard [-- --out FILE] [-- --short]`: a run is exported, and TensorBoard and pandas read it
// back; then one is trained for a minute (`--short`: for seconds), and TensorBoard reads what it wrote meanwhile. Writes
// test/peers/tensorboard/results, or FILE. Needs desktops, and PyPI the first time: ends with 75 where the Python
// packages cannot be had.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { bundled } from './lib/bundle.mjs';
import { ensureBuilt } from './lib/ensure.mjs';

const { values: o } = parseArgs({ options: { out: { type: 'string' }, short: { type: 'boolean', default: false } } });
const folder = join(process.cwd(), 'test/peers/tensorboard'),
  venv = join(homedir(), '.cache', 'dart-studio', 'peers', 'tensorboard'),
  python = join(venv, 'bin', 'python'),
  result = o.out ?? join(folder, 'results', 'tensorboard.json'),
  scratch = mkdtempSync(join(tmpdir(), 'dart-board-'));
const UNAVAILABLE = 75;
const run = (file, ...argv) => {
  const { status } = spawnSync(file, argv, { stdio: 'inherit' });
  if (status !== 0) throw new Error(`${file} ${argv.join(' ')} ended with ${status}`);
};

/** The programs that read; what an earlier installation left half-way is begun anew. */
function environment() {
  const requirements = join(folder, 'requirements.txt'),
    wanted = readFileSync(requirements, 'utf8'),
    stamp = join(venv, 'installed.txt');
  if (existsSync(python) && existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  run('python3', '-m', 'venv', '--clear', venv);
  run(python, '-m', 'pip', 'install', '--quiet', '--retries', '7', '-r', requirements);
  writeFileSync(stamp, wanted);
}
async function exported() {
  const maker = await bundled(join(folder, 'makeRun.ts'), 'makeRun');
  const made = join(scratch, 'run'),
    files = ['metrics.csv', 'metrics.json', 'metrics.parquet', 'rollouts.csv', 'rollouts.json', 'rollouts.parquet'].map(
      (f) => join(scratch, f),
    ),
    events = join(scratch, 'events'),
    command = (...argv) => run(process.execPath, 'dist/runtime.js', 'runs', 'export', made, ...argv);
  run(process.execPath, maker, made);
  command(events, '--what', 'tensorboard');
  for (const f of files) command(f, '--what', f.includes('rollouts') ? 'rollouts' : 'metrics');
  run(python, join(folder, 'read.py'), events, ...files, result);
}
function live() {
  const runs = join(scratch, 'runs'),
    file = join(scratch, 'live.dart-run.json'),
    config = JSON.parse(readFileSync(join(folder, 'live.dart-run.json'), 'utf8'));
  // A few updates and the evaluations before and after them are enough to be read.
  if (o.short) Object.assign(config, { budget: { updates: 3, minutes: 10 } });
  writeFileSync(file, JSON.stringify(config));
  run(process.execPath, 'dist/runtime.js', 'train', file, '--runs', runs);
  const trained = join(runs, readdirSync(runs)[0]),
    again = join(scratch, 'exported');
  run(process.execPath, 'dist/runtime.js', 'runs', 'export', trained, again, '--what', 'tensorboard');
  run(python, join(folder, 'read_live.py'), join(trained, 'tensorboard'), again, result);
}

try {
  await ensureBuilt();
  let why;
  try {
    environment();
  } catch (e) {
    why = e;
  }
  if (why) {
    console.error(`TensorBoard and pandas cannot be installed: ${why.message}`);
    process.exitCode = UNAVAILABLE;
  } else {
    mkdirSync(dirname(result), { recursive: true });
    await exported();
    live();
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
