// `npm run quickstart [-- ARGS] [--json FILE]`: from a bare clone to a training run on real desktops, and its figures on
// everything held out. Node built-ins only until the packages are there.
import { spawn, spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { ensureBuilt } from './lib/ensure.mjs';
import { LOCAL_PACKAGES, dockerAddress, dockerAnswers, ensurePackages, requireNode } from './lib/system.mjs';

requireNode();
const args = process.argv.slice(2);
// With a file, --json asks for the figures there; without one, for status as JSON lines.
const json = args.indexOf('--json'),
  file = json < 0 ? undefined : args[json + 1];
if (file !== undefined && !file.startsWith('-')) args.splice(json, 2, '--figures', file);
else args.push('--figures');
const { provider = 'auto' } = parseArgs({
  args,
  options: { provider: { type: 'string' } },
  strict: false,
}).values;
const { fault } = provider === 'auto' || provider === 'docker' ? dockerAddress() : {};
if (fault) {
  console.error(fault);
  process.exit(1);
}
if (provider === 'local' || (provider === 'auto' && !(await dockerAnswers()))) {
  const missing = ensurePackages(LOCAL_PACKAGES);
  if (missing.length) {
    console.error(
      `Desktops need either a running Docker engine, or these system packages: ${missing.join(' ')}.\nInstall them (Debian/Ubuntu: sudo apt-get install ${missing.join(' ')}), or start Docker, then run the command again.`,
    );
    process.exit(1);
  }
}
await ensureBuilt();
const node = (...args) =>
  spawnSync(process.execPath, ['--enable-source-maps', 'dist/runtime.js', ...args], { stdio: 'inherit' }).status ?? 1;
const built = node('desktop', 'build', '--provider', String(provider));
if (built !== 0) process.exit(built);
const child = spawn(
  process.execPath,
  ['--enable-source-maps', 'dist/runtime.js', 'train', '--preset', 'quickstart', ...args],
  { stdio: 'inherit' },
);
for (const s of ['SIGINT', 'SIGTERM'])
  process.on(s, () => {
    if (s === 'SIGTERM') child.kill(s);
  });
child.on('exit', (code, signal) => process.exit(signal ? 128 : (code ?? 1)));
