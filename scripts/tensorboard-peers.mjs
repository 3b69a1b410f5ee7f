// `npm run test:peers:tensorboard`: a run is exported, and TensorBoard and pandas read it back; then one is trained for a
// minute, and TensorBoard reads what it wrote meanwhile. Writes test/peers/tensorboard/results. Needs desktops, and PyPI
// the first time.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureBuilt } from './lib/ensure.mjs';

const folder = join(process.cwd(), 'test/peers/tensorboard'),
  venv = join(homedir(), '.cache', 'dart-studio', 'peers', 'tensorboard'),
  python = join(venv, 'bin', 'python'),
  scratch = mkdtempSync(join(tmpdir(), 'dart-board-'));
const run = (file, ...argv) => {
  const { status } = spawnSync(file, argv, { stdio: 'inherit' });
  if (status !== 0) throw new Error(`${file} ${argv.join(' ')} ended with ${status}`);
};

try {
  await ensureBuilt();
  if (!existsSync(python)) run('python3', '-m', 'venv', venv);
  run(python, '-m', 'pip', 'install', '--quiet', '-r', join(folder, 'requirements.txt'));
  const { build } = await import('esbuild');
  await build({
    entryPoints: [join(folder, 'makeRun.ts')],
    outfile: join('dist', 'bench', 'makeRun.mjs'),
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    logLevel: 'warning',
    banner: {
      js: "import { createRequire as __cr } from 'node:module'; const require = __cr(import.meta.url); import { fileURLToPath as __fu } from 'node:url'; import { dirname as __dn } from 'node:path'; const __filename = __fu(import.meta.url); const __dirname = __dn(__filename);",
    },
  });
  const made = join(scratch, 'run'),
    files = ['metrics.csv', 'metrics.json', 'metrics.parquet', 'rollouts.csv', 'rollouts.json', 'rollouts.parquet'].map(
      (f) => join(scratch, f),
    ),
    events = join(scratch, 'events'),
    command = (...argv) => run(process.execPath, 'dist/runtime.js', 'runs', 'export', made, ...argv);
  run(process.execPath, join('dist', 'bench', 'makeRun.mjs'), made);
  command(events, '--what', 'tensorboard');
  for (const f of files) command(f, '--what', f.includes('rollouts') ? 'rollouts' : 'metrics');
  mkdirSync(join(folder, 'results'), { recursive: true });
  const result = join(folder, 'results', 'tensorboard.json');
  run(python, join(folder, 'read.py'), events, ...files, result);
  const runs = join(scratch, 'runs');
  run(process.execPath, 'dist/runtime.js', 'train', join(folder, 'live.dart-run.json'), '--runs', runs);
  const trained = join(runs, readdirSync(runs)[0]),
    exported = join(scratch, 'exported');
  run(process.execPath, 'dist/runtime.js', 'runs', 'export', trained, exported, '--what', 'tensorboard');
  run(python, join(folder, 'read_live.py'), join(trained, 'tensorboard'), exported, result);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
