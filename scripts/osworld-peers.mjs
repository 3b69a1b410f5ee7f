// `npm run test:peers:osworld`: OSWorld's own controllers and cua's transport drive a served desktop; writes
// test/peers/osworld/results. Needs PyPI the first time, and local desktops or a Docker engine. With `-- --image osworld`
// they drive that image's Chromium and VLC by their own ports, too.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { ensureBuilt } from './lib/ensure.mjs';

const folder = join(process.cwd(), 'test/peers/osworld'),
  venv = join(homedir(), '.cache', 'dart-studio', 'peers', 'osworld'),
  python = join(venv, 'bin', 'python');
const run = (file, ...argv) => {
  const { status } = spawnSync(file, argv, { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
};

await ensureBuilt();
if (!existsSync(python)) run('python3', '-m', 'venv', venv);
run(python, '-m', 'pip', 'install', '--quiet', '-r', join(folder, 'requirements.txt'));
// Their own requirements are the evaluators' and other transports': gigabytes that are not used here.
run(python, '-m', 'pip', 'install', '--quiet', '--no-deps', 'desktop-env==1.0.2', 'cua-sandbox==0.9.1');
const at = process.argv.indexOf('--image'),
  image = at < 0 ? 'desk' : process.argv[at + 1];
const serve = ['dist/runtime.js', 'desktop', 'serve', '--osworld', '--port', '0', '--accessibility', '--image', image],
  served = spawn(process.execPath, [...serve, '--screen', '1280x720'], { stdio: ['ignore', 'pipe', 'inherit'] });
const address = await new Promise((resolve, reject) => {
  served.stdout.once('data', (data) => resolve(String(data)));
  served.once('exit', () => reject(new Error('No desktop was served.')));
});
mkdirSync(join(folder, 'results'), { recursive: true });
const { status } = spawnSync(
  python,
  [
    join(folder, 'client.py'),
    address.trim(),
    join(folder, 'results', image === 'desk' ? 'osworld.json' : `osworld-${image}.json`),
  ],
  { stdio: 'inherit' },
);
served.kill('SIGTERM');
process.exitCode = status ?? 1;
