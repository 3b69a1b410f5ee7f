// The end-to-end rig: a browser, the tools that drive it and two real VS Code workbenches (code-server), installed once
// into the cache folder from Debian's and npm's registries. What cannot be installed is answered with its reason;
// nothing here throws for that.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  createWriteStream,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { ensurePackages, whereIs } from './system.mjs';

/** Same rule as the desktop's cache (runtime/cluster/imageBuild/rootfs.ts). */
export const cacheRoot = () =>
  join(process.env.DART_STUDIO_CACHE || process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'dart-studio');
export const rigRoot = () => join(cacheRoot(), 'e2e');

/**
 * code-server releases by the VS Code they are: the oldest that package.json's engines admits, and a current one, which
 * needs a Node of its own.
 */
export const workbenches = {
  min: { vscode: '1.99.3', codeServer: '4.99.4' },
  latest: { vscode: '1.139.1', codeServer: '4.139.1', node: '24.21.0' },
};
const tools = { 'playwright-core': '1.65.1', 'axe-core': '4.14.1', '@vscode/vsce': '3.9.2' };
/** What makes a VSIX smaller than zlib can; what it makes is read back by Node's zlib before it is used. */
const packer = { libdeflate: '0.1.0' };
const fonts = [['/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf', 'fonts-dejavu-core']];
/** spdlog and argon2 are compiled here; ripgrep's own download does not come from npm. */
const buildPackages = [
  ['rg', 'ripgrep'],
  ['python3', 'python3'],
  ['make', 'make'],
  ['g++', 'g++'],
  ['pkg-config', 'pkg-config'],
];

/**
 * @param {{ browser?: boolean, tools?: boolean, packer?: boolean, latest?: boolean, min?: boolean }} want
 * @returns {Promise<Record<string, { ok: true, path: string } | { ok: false, why: string }>>} browser = the executable,
 *   the others = a folder that holds node_modules.
 */
export async function ensureRig(want) {
  const root = rigRoot();
  let release;
  try {
    mkdirSync(root, { recursive: true });
    release = await lock(root);
  } catch (e) {
    const why = `${root} cannot be written (${e.message}); set DART_STUDIO_CACHE to a folder that you can write to`;
    return Object.fromEntries(Object.keys(want).map((k) => [k, { ok: false, why }]));
  }
  try {
    const out = {};
    // Debian's package manager takes one at a time; npm does not mind company.
    const waits = [];
    if (want.tools) waits.push(settle(out, 'tools', installTools(root)));
    if (want.packer) waits.push(settle(out, 'packer', installPacker(root)));
    if (want.browser) out.browser = await browser();
    const compilers = want.latest || want.min ? ensurePackages(buildPackages) : [];
    for (const which of ['latest', 'min']) {
      if (!want[which]) continue;
      if (compilers.length)
        out[which] = {
          ok: false,
          why: `${compilers.join(' ')} not installed (needs root and apt, or install it yourself)`,
        };
      else waits.push(settle(out, which, installWorkbench(root, which)));
    }
    await Promise.all(waits);
    return out;
  } finally {
    release();
  }
}

/**
 * The Node of the current workbench, alone: for what must hold whichever Node an editor brings. Rejects when npm's
 * registry cannot be reached.
 *
 * @returns {Promise<string>} the executable
 */
export async function ensureNode() {
  const root = rigRoot(),
    { vscode, node } = workbenches.latest;
  const installed = join(root, `vscode-${vscode}`);
  if (existsSync(join(installed, '.installed'))) return join(installed, 'node_modules/node/bin/node');
  mkdirSync(root, { recursive: true });
  const release = await lock(root);
  try {
    const dir = await once(join(root, `node-${node}`), { node }, `Node ${node}`, (run) =>
      run('npm', ['install', '--no-audit', '--no-fund', `node@${node}`]),
    );
    return join(dir, 'node_modules/node/bin/node');
  } finally {
    release();
  }
}
const settle = (out, key, work) =>
  work.then(
    (path) => {
      out[key] = { ok: true, path };
    },
    (e) => {
      out[key] = { ok: false, why: e.message };
    },
  );

/** For the same tests Chromium's shell, which has no windows, takes half the processor time of the whole browser. */
async function browser() {
  const shell = 'chromium-headless-shell',
    found = () => [shell, 'chromium', 'chromium-browser', 'google-chrome'].map(whereIs).find(Boolean);
  let missing = ensurePackages(found() ? fonts : [[shell, shell], ...fonts]);
  // Systems from before 2024 have no package of the shell.
  if (!found()) missing = ensurePackages([['chromium', 'chromium'], ...fonts]);
  return found()
    ? { ok: true, path: found() }
    : { ok: false, why: `${missing.join(' ')} not installed (needs root and apt, or install it yourself)` };
}

/**
 * Runs `work` in a folder unless a former run of the same recipe got through; a folder of a failed one is gone on with.
 */
async function once(dir, recipe, what, work) {
  const stamp = join(dir, '.installed'),
    want = createHash('sha256').update(JSON.stringify(recipe)).digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === want) return dir;
  console.error(`Installing ${what}…`);
  if (existsSync(stamp)) rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  if (!existsSync(join(dir, 'package.json'))) writeFileSync(join(dir, 'package.json'), '{"private":true}\n');
  await work((cmd, args, o = {}) => command(cmd, args, { cwd: dir, log: join(dir, 'install.log'), ...o }));
  writeFileSync(stamp, want);
  return dir;
}

const npmInstall = (run, args, o) => run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...args], o);

const installTools = (root) =>
  once(join(root, 'tools'), tools, 'Playwright, axe and vsce', (run) =>
    npmInstall(
      run,
      Object.entries(tools).map(([n, v]) => `${n}@${v}`),
    ),
  );

const installPacker = (root) =>
  once(join(root, 'packer'), packer, 'libdeflate', (run) =>
    npmInstall(
      run,
      Object.entries(packer).map(([n, v]) => `${n}@${v}`),
    ),
  );

const installWorkbench = (root, which) => {
  const w = workbenches[which],
    dir = join(root, `vscode-${w.vscode}`);
  return once(dir, w, `the workbench of VS Code ${w.vscode} (about 40 s)`, async (run) => {
    // The launcher, its extension host and what is compiled for them use the Node that is first on PATH.
    if (w.node) await run('npm', ['install', '--no-audit', '--no-fund', `node@${w.node}`]);
    const env = workbenchEnv(dir);
    await npmInstall(run, [`code-server@${w.codeServer}`], { env });
    const v = join(dir, 'node_modules/code-server/lib/vscode');
    await Promise.all([
      npmInstall(run, ['--omit=dev'], { cwd: v, env }),
      npmInstall(run, ['--omit=dev'], { cwd: join(v, 'extensions'), env }),
    ]);
    // Without spdlog every output channel is empty. argon2 is prebuilt in later releases.
    await run('npm', ['rebuild', '@vscode/spdlog'], { cwd: v, env });
    if (which === 'min') {
      await run('npm', ['rebuild', 'argon2'], { env });
      const bin = join(v, 'node_modules/@vscode/ripgrep/bin');
      mkdirSync(bin, { recursive: true });
      rmSync(join(bin, 'rg'), { force: true });
      symlinkSync(whereIs('rg'), join(bin, 'rg'));
    }
    for (const d of ['node_modules/@github', 'node_modules/@microsoft/mxc-sdk', 'extensions/copilot'])
      rmSync(join(v, d), { recursive: true, force: true });
    await run(join(dir, 'node_modules/.bin/code-server'), ['--version'], { env });
  });
};

/** Environment to start a workbench's programs in: its own Node first, where it has one. */
export function workbenchEnv(dir, env = process.env) {
  const bin = join(dir, 'node_modules/node/bin');
  return { ...env, PATH: existsSync(bin) ? bin + delimiter + env.PATH : env.PATH };
}

/** Runs to the end; everything it says goes to the log, the end of which is told when it fails. */
function command(cmd, args, { cwd, env = process.env, log }) {
  return new Promise((done, fail) => {
    // An npm that starts us says where its own project is; the one we start must not believe that.
    const clean = Object.fromEntries(
      Object.entries(env).filter(
        ([k]) => !/^(npm_(?!config_)|npm_config_(local_prefix|prefix|omit|workspace)|INIT_CWD$)/i.test(k),
      ),
    );
    const to = createWriteStream(log, { flags: 'a' }),
      tail = [];
    const child = spawn(cmd, args, { cwd, env: clean, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const s of [child.stdout, child.stderr])
      s.on('data', (d) => {
        to.write(d);
        tail.push(d.toString());
        if (tail.length > 50) tail.shift();
      });
    child.once('error', (e) => fail(new Error(`${cmd}: ${e.message}`)));
    child.once('close', (code) => {
      to.end();
      if (code === 0) done();
      else
        fail(
          new Error(
            `${cmd} ${args.join(' ')} failed (exit code ${code}; whole output in ${log}): ${tail.join('').trim().split('\n').slice(-3).join(' | ')}`,
          ),
        );
    });
  });
}

/**
 * One installer at a time. The lock belongs to the open file, which flock(1) shares with us: it stays when flock has
 * ended, and the kernel lets go of it when we end, however that is.
 */
async function lock(root) {
  if (process.platform !== 'linux') return () => undefined;
  const fd = openSync(join(root, 'install.lock'), 'a', 0o600);
  const code = await new Promise((done) => {
    spawn('flock', ['3'], { stdio: ['ignore', 'ignore', 'inherit', fd] })
      .once('error', (e) => done(e.message))
      .once('exit', (c, signal) => done(c ?? signal));
  });
  if (code !== 0) {
    closeSync(fd);
    throw new Error(`${join(root, 'install.lock')} cannot be locked: flock(1) of util-linux ended with ${code}`);
  }
  return () => closeSync(fd);
}
