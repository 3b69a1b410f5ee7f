// `npm run test:peers:openenv`: OpenEnv's own validator and client, and an evaluation of verifiers, drive served desktops;
// writes test/peers/openenv/results. Needs PyPI the first time, and local desktops or a Docker engine.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { ensureBuilt } from './lib/ensure.mjs';

const folder = join(process.cwd(), 'test/peers/openenv'),
  venv = join(homedir(), '.cache', 'dart-studio', 'peers', 'openenv'),
  python = join(venv, 'bin', 'python');
const run = (file, ...argv) => {
  const { status } = spawnSync(file, argv, { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
};

await ensureBuilt();
if (!existsSync(python)) run('python3', '-m', 'venv', venv);
run(python, '-m', 'pip', 'install', '--quiet', '-r', join(folder, 'requirements.txt'));
const serve = ['dist/runtime.js', 'desktop', 'serve', '--openenv', '--port', '0', '--count', '2'],
  served = spawn(process.execPath, [...serve, '--families', 'term-touch,press-button', '--max-steps', '4'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
const address = await new Promise((resolve, reject) => {
  served.stdout.once('data', (data) => resolve(String(data).trim()));
  served.once('exit', () => reject(new Error('No desktop was served.')));
});
mkdirSync(join(folder, 'results'), { recursive: true });
const { status } = spawnSync(
  python,
  [join(folder, 'client.py'), address, join(folder, 'results', 'openenv.json')],
  { stdio: 'inherit' },
);
served.kill('SIGTERM');
process.exitCode = status ?? 1;
