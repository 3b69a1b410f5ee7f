// Set-up steps shared by the scripts; Node built-ins only, so that a bare clone can start with any of them.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, lstatSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createHash } from 'node:crypto';

const newest = (dir) => {
  let t = 0;
  for (const e of readdirSync(dir, { withFileTypes: true })) {
    const p = join(dir, e.name);
    t = Math.max(t, e.isDirectory() ? newest(p) : statSync(p).mtimeMs);
  }
  return t;
};

/** node_modules as the lock file says; installs only when the lock file changed since the last time. */
export function ensureDeps() {
  const stamp = 'node_modules/.dart-studio-lock';
  const want = createHash('sha256').update(readFileSync('package-lock.json')).digest('hex');
  // Without what building takes it was installed for production, as npm is set up on some machines.
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === want && existsSync('node_modules/esbuild')) return;
  // `npm ci` would empty the folder that a link leads to, which is another checkout's.
  if (lstatSync('node_modules', { throwIfNoEntry: false })?.isSymbolicLink()) {
    console.error('node_modules is a link, so nothing is installed: it may not be as package-lock.json says.');
    return;
  }
  console.error('Installing packages (npm ci)…');
  // Its words go to standard error: a command's own output may be redirected into a file.
  const r = spawnSync('npm', ['ci', '--include=dev', '--no-audit', '--no-fund'], {
    stdio: ['ignore', 2, 2],
    env: { ...process.env, ONNXRUNTIME_NODE_INSTALL: 'skip' },
  });
  if (r.status !== 0) {
    console.error('npm ci failed: check that the npm registry can be reached, then run the command again.');
    process.exit(1);
  }
  writeFileSync(stamp, want);
}

/** dist/ newer than every source. */
export async function ensureBuilt() {
  ensureDeps();
  let built = 0;
  try {
    built = JSON.parse(readFileSync('dist/build.json', 'utf8')).time;
  } catch {
    /* never built */
  }
  const sources = Math.max(...['runtime', 'extension', 'webview'].map(newest), statSync('scripts/build.mjs').mtimeMs);
  if (built <= sources) execFileSync(process.execPath, ['scripts/build.mjs'], { stdio: ['ignore', 2, 2] });
}
