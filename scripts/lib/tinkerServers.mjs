// The Tinker-protocol servers of `npm run test:peers:tinker`: how each is installed and started, and where it saves.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

const HERE = join(process.cwd(), 'test/peers/tinker'),
  ROOT = join(homedir(), '.cache', 'dart-studio', 'peers', 'tinker'),
  // torch and its CUDA libraries, about 5 GB, are downloaded once; environments share them by hard links.
  CACHE = join(ROOT, 'cache');
const UV = '0.13.9',
  PYTHON = '3.12';
export const KEY = 'tml-dummy';
/** A server with its own processes may take minutes where others keep the cores busy. */
const START_MS = 10 * 60_000,
  END_MS = 20_000;

export const SERVERS = {
  tuft: {
    title: 'TuFT, HF backend',
    packages: ['tuft[backend]==0.2.2'],
    overrides: ['vllm ; sys_platform == "never"', 'torch==2.15.0'],
    versions: ['tuft', 'torch', 'transformers', 'peft', 'ray', 'tinker'],
    // It resets a counter of CUDA's on any machine.
    patch: {
      file: 'tuft/backends/hf_training_model.py',
      from: ' torch.cuda.reset_peak_memory_stats()',
      to: ' torch.cuda.is_available() and torch.cuda.reset_peak_memory_stats()',
    },
    model: () => 'tiny',
    argv: ({ model, work, port }) => [join(HERE, 'serve_tuft.py'), model, work, port],
    adapter: (work, id, name) => join(work, 'checkpoints', id, name, 'adapter'),
  },
  skyrl: {
    title: 'SkyRL, JAX backend',
    packages: ['skyrl[tinker,jax]==0.4.0', 'aiohttp', 'pillow'],
    overrides: ['torch==2.15.0'],
    versions: ['skyrl', 'jax', 'flax', 'transformers', 'tinker'],
    model: (model) => model,
    // It starts its engine through `uv run`.
    program: (bin) => join(bin, 'uv'),
    argv: ({ model, work, port }) =>
      ['run', '--no-project', '--active', '-m', 'skyrl.tinker.api', '--base-model', model, '--backend', 'jax'].concat([
        ...['--host', '127.0.0.1', '--port', port, '--checkpoints-base', join(work, 'checkpoints')],
        ...['--database-url', `sqlite:///${join(work, 'tinker.db')}`],
        ...['--backend-config', JSON.stringify({ max_lora_adapters: 32, max_lora_rank: 8, train_micro_batch_size: 0 })],
      ]),
    env: { JAX_PLATFORMS: 'cpu' },
    adapter: (work, id, name) => unpacked(join(work, 'checkpoints', id, 'sampler_weights', `${name}.tar.gz`)),
  },
  hatchery: {
    title: 'hatchery-core',
    packages: ['hatchery-core==0.3.0'],
    overrides: ['torch==2.15.0'],
    versions: ['hatchery-core', 'torch', 'transformers', 'peft', 'tinker'],
    model: (model) => model,
    argv: ({ model, port }) => [join(HERE, 'serve_hatchery.py'), model, port],
  },
};

/** A packed adapter as a folder beside it. */
function unpacked(archive) {
  const folder = `${archive}.folder`;
  mkdirSync(folder, { recursive: true });
  execFileSync('tar', ['-xzf', archive, '-C', folder]);
  return folder;
}
const pythonOf = (name) => join(ROOT, name, 'bin', 'python');
const uvBin = join(ROOT, 'uv', 'bin');
const environment = () => ({
  ...process.env,
  PATH: `${uvBin}${delimiter}${process.env.PATH}`,
  UV_CACHE_DIR: CACHE,
  UV_HTTP_TIMEOUT: '180',
});
function run(file, argv, input) {
  const r = spawnSync(file, argv, { input, encoding: 'utf8', env: environment(), stdio: ['pipe', 2, 'pipe'] });
  if (r.status !== 0)
    throw new Error(`${file} ${argv.join(' ')} ended with ${r.status ?? r.error?.message}: ${r.stderr.slice(-3000)}`);
}
/** A Python of that version: on the path, one of pyenv's, or what uv fetches. */
function interpreter() {
  const works = (file) => spawnSync(file, ['--version']).status === 0,
    pyenv = spawnSync('pyenv', ['prefix', PYTHON], { encoding: 'utf8' }).stdout?.trim();
  const candidates = [`python${PYTHON}`, ...(pyenv ? [join(pyenv, 'bin', 'python')] : [])];
  return candidates.find(works) ?? PYTHON;
}

/** An environment of the server's own; answers its Python. Throws with the output of what failed. */
export function install(name) {
  const { packages, overrides, patch } = SERVERS[name],
    python = pythonOf(name),
    stamp = join(ROOT, name, 'installed.json'),
    wanted = JSON.stringify({ packages, overrides, patch, uv: UV });
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return python;
  mkdirSync(ROOT, { recursive: true });
  if (!existsSync(join(uvBin, 'uv'))) {
    run('python3', ['-m', 'venv', '--clear', join(ROOT, 'uv')]);
    run(join(uvBin, 'python'), ['-m', 'pip', 'install', '--quiet', `uv==${UV}`]);
  }
  const uv = join(uvBin, 'uv'),
    override = join(ROOT, `${name}.overrides.txt`);
  writeFileSync(override, overrides.join('\n'));
  run(uv, ['venv', '--quiet', '--clear', '--python', interpreter(), join(ROOT, name)]);
  run(uv, ['pip', 'install', '--quiet', '--python', python, ...packages, '--override', override]);
  if (patch) patched(python, patch);
  writeFileSync(stamp, wanted);
  return python;
}
function patched(python, { file, from, to }) {
  const site = execFileSync(python, ['-c', 'import sysconfig; print(sysconfig.get_path("purelib"))'], {
      encoding: 'utf8',
    }).trim(),
    path = join(site, file),
    text = readFileSync(path, 'utf8');
  if (!text.includes(from)) throw new Error(`${file} is not the file that the patch is for`);
  // A new file: the old one is a hard link of the copy in uv's cache, which stays as it was published.
  execFileSync('rm', [path]);
  writeFileSync(path, text.replaceAll(from, to));
}
export function versionsOf(name) {
  const program = `import json, platform, sys
from importlib.metadata import version, PackageNotFoundError
def of(n):
    try: return version(n)
    except PackageNotFoundError: return None
print(json.dumps({"python": platform.python_version(), **{n: v for n in sys.argv[1:] if (v := of(n))}}))`;
  return JSON.parse(
    execFileSync(pythonOf(name), ['-c', program, ...SERVERS[name].versions], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 2],
    }),
  );
}

const freePort = () =>
  new Promise((resolve, reject) => {
    const s = createServer();
    s.once('error', reject);
    s.listen(0, '127.0.0.1', () => {
      const { port } = s.address();
      s.close(() => resolve(port));
    });
  });

/** Starts a server and waits until it says that it listens; `end` ends it with all its processes. */
export async function start(name, model, work) {
  const { argv, program, env } = SERVERS[name],
    port = String(await freePort());
  mkdirSync(work, { recursive: true });
  const child = spawn(program?.(uvBin) ?? pythonOf(name), argv({ model, work, port }), {
    cwd: work,
    // A group of its own: what it starts is ended with it.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...environment(), VIRTUAL_ENV: join(ROOT, name), HF_HUB_OFFLINE: '1', UV_OFFLINE: '1', ...env },
  });
  const closed = new Promise((resolve) => child.once('close', resolve));
  const signal = (s) => {
    try {
      process.kill(-child.pid, s);
    } catch {
      // Gone.
    }
  };
  const end = async () => {
    signal('SIGTERM');
    const timer = setTimeout(() => signal('SIGKILL'), END_MS);
    await closed;
    clearTimeout(timer);
    // Processes that the first of them left behind.
    signal('SIGKILL');
  };
  try {
    await listening(child, closed);
  } catch (e) {
    await end();
    throw e;
  }
  return { url: `http://127.0.0.1:${port}`, end };
}
function listening(child, closed) {
  let said = '';
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`not up in ${START_MS / 1000} s: ${said.slice(-3000)}`)), START_MS);
    const read = (data) => {
      said = (said + data).slice(-20_000);
      if (!said.includes('Uvicorn running on')) return;
      clearTimeout(timer);
      resolve();
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    void closed.then((code) => {
      clearTimeout(timer);
      reject(new Error(`it ended with ${code}: ${said.slice(-3000)}`));
    });
  });
}
