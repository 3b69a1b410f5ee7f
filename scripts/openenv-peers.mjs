// `npm run test:peers:openenv`: OpenEnv's own validator and client, and an evaluation of verifiers, drive served desktops;
// writes test/peers/openenv/results. Needs PyPI the first time, and local desktops or a Docker engine.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { ensureBuilt } from './lib/ensure.mjs';

const folder = join(process.cwd(), 'test/peers/openenv'),
  peers = join(homedir(), '.cache', 'dart-studio', 'peers');
const run = (file, ...argv) => {
  const { status } = spawnSync(file, argv, { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
};

/** An environment of its own: the two ask for packages that exclude one another. */
const environment = (name, ...wanted) => {
  const python = join(peers, name, 'bin', 'python');
  if (!existsSync(python)) run('python3', '-m', 'venv', join(peers, name));
  run(python, '-m', 'pip', 'install', '--quiet', ...wanted);
  return python;
};

await ensureBuilt();
const python = environment('openenv', 'openenv==0.10.0'),
  verifiers = environment('verifiers', 'verifiers[openenv]==0.4.0');
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
  [join(folder, 'client.py'), address, join(folder, 'results', 'openenv.json'), join(verifiers, '..')],
  { stdio: 'inherit' },
);
served.kill('SIGTERM');
process.exitCode = status ?? 1;
