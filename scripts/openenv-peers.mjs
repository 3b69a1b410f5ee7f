// `npm run test:peers:openenv`: OpenEnv's own validator and client, and an evaluation of verifiers, drive served desktops;
// writes test/peers/openenv/results. Needs PyPI the first time, and local desktops or a Docker engine.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
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
const servers = [];
/** Address of two served desktops. */
const serve = (...args) => {
  const argv = ['dist/runtime.js', 'desktop', 'serve', '--openenv', '--port', '0', '--count', '2', ...args],
    served = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
  servers.push(served);
  return new Promise((resolve, reject) => {
    served.stdout.once('data', (data) => resolve(String(data).trim()));
    served.once('exit', () => reject(new Error('No desktop was served.')));
  });
};
/** Task files of OSWorld that need no download, with a solution each (client.py). */
const osworldTasks = () => {
  const dir = mkdtempSync(join(tmpdir(), 'openenv-osworld-'));
  for (const line of readFileSync('test/fixtures/osworld/tasks.jsonl', 'utf8').trim().split('\n')) {
    const { task } = JSON.parse(line);
    if (/^(e0df059f|bedcedc4|8ba5ae7a)/.test(task.id))
      writeFileSync(join(dir, `${task.id}.json`), JSON.stringify(task));
  }
  return dir;
};
const desk = await serve('--families', 'term-touch,press-button', '--max-steps', '4'),
  // `desktop build --image osworld` first; without it the results say that it was left out.
  image = spawnSync(process.execPath, ['dist/runtime.js', 'desktop', 'status', '--image', 'osworld', '--json'], {
    encoding: 'utf8',
  }),
  built = JSON.parse(image.stdout).providers.some((p) => p.provider === 'local' && p.ok),
  osworld = built
    ? await serve('--provider', 'local', '--image', 'osworld', '--screen', '1920x1080', '--tasks', osworldTasks())
    : 'none';
mkdirSync(join(folder, 'results'), { recursive: true });
const { status } = spawnSync(
  python,
  [join(folder, 'client.py'), desk, osworld, join(folder, 'results', 'openenv.json'), join(verifiers, '..')],
  { stdio: 'inherit' },
);
for (const served of servers) served.kill('SIGTERM');
process.exitCode = status ?? 1;
