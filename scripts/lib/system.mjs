// What the machine must have: Node 20, and for desktops either a Docker engine or bubblewrap + mmdebstrap. Node
// built-ins only.
import { spawn, spawnSync } from 'node:child_process';
import { accessSync, closeSync, constants, existsSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { get } from 'node:http';
import { connect } from 'node:net';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

/** Where a command is, or undefined. */
export const whereIs = (cmd) =>
  [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin']
    .map((d) => join(d, cmd))
    .find((f) => {
      try {
        accessSync(f, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
/** A command on the path; with a slash, a file; or a question of one's own. */
export const has = (what) =>
  typeof what === 'function' ? what() : what.includes('/') ? existsSync(what) : whereIs(what) !== undefined;
const isRoot = () => process.getuid?.() === 0;
const sudo = () =>
  isRoot() ? [] : has('sudo') && spawnSync('sudo', ['-n', 'true']).status === 0 ? ['sudo', '-n'] : null;

export function requireNode() {
  const major = Number(process.versions.node.split('.')[0]);
  if (major < 20) {
    console.error(
      `Node ${process.versions.node} is too old: install Node 20 or newer (https://nodejs.org), then run the command again.`,
    );
    process.exit(1);
  }
}

/** Installs Debian packages where that needs no password, else returns what is missing. */
export function ensurePackages(packages) {
  const missing = packages.filter(([cmd]) => !has(cmd)).map(([, pkg]) => pkg);
  if (missing.length === 0) return [];
  const pre = sudo();
  if (!has('apt-get') || pre === null) return missing;
  console.error(`Installing system packages: ${missing.join(' ')}…`);
  const run = (...cmd) =>
    spawnSync(cmd[0], cmd.slice(1), {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    }).status === 0;
  run(...pre, 'apt-get', 'update', '-qq');
  run(
    ...pre,
    'apt-get',
    '-o',
    'DPkg::Lock::Timeout=300',
    'install',
    '-y',
    '-qq',
    '--no-install-recommends',
    ...missing,
  );
  return packages.filter(([cmd]) => !has(cmd)).map(([, pkg]) => pkg);
}

/**
 * Where the runtime looks for an engine (docker-modem, and runtime/cluster/providers/dockerHosts.ts).
 *
 * @returns {{ path: string } | { host: string; port: number } | { ssh: true } | { fault: string }}
 */
export function dockerAddress(env = process.env, home = homedir()) {
  const address = env.DOCKER_HOST;
  if (!address) {
    const own = join(home, '.docker/run/docker.sock');
    return { path: existsSync(own) ? own : '/var/run/docker.sock' };
  }
  if (address.startsWith('/')) return { path: address };
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol === 'unix:') return { path: decodeURIComponent(url.pathname) };
  if (url?.protocol === 'ssh:') return { ssh: true };
  if (['tcp:', 'http:', 'https:'].includes(url?.protocol) && url.hostname)
    return { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || 2375) };
  return {
    fault: `DOCKER_HOST=${address} is no address of a Docker engine. Write it as unix:///var/run/docker.sock, tcp://host:2375 or ssh://user@host, or unset it, then run the command again.`,
  };
}
/** Whether a Docker engine answers; of one by ssh only the runtime can tell, so that it is taken to. */
export const dockerAnswers = () =>
  new Promise((resolve) => {
    const { path, host, port, ssh, fault } = dockerAddress();
    if (ssh || fault) return resolve(ssh === true);
    if (path && !existsSync(path)) return resolve(false);
    // An engine that is still starting, and may yet fail, takes connections and does not answer.
    get({ ...(path ? { socketPath: path } : { host, port }), path: '/_ping', timeout: 5000 }, (r) => {
      r.resume();
      // One that wants TLS answers 400 to this.
      resolve(r.statusCode < 500);
    })
      .on('timeout', function () {
        this.destroy(new Error('no answer'));
      })
      .on('error', () => resolve(false));
  });

/**
 * A Docker engine that answers: one that runs, or where this is root one started for as long as `stop` is not called.
 * `why` says why there is none.
 */
export async function ensureDocker() {
  const none = (why) => ({ ok: false, why, stop: async () => {} }),
    { fault } = dockerAddress();
  if (fault) return none(fault);
  if (await dockerAnswers()) return { ok: true, why: '', stop: async () => {} };
  if (!has('dockerd')) return none('docker.io is not installed');
  if (!isRoot()) return none('no Docker engine answers, and starting one takes root');
  mkdirSync('.cache', { recursive: true });
  let why = '';
  for (const attempt of [1, 2, 3]) {
    // One that takes connections is alive, whosever process it is.
    if (!(await dockerListens())) forgetDeadDocker();
    const engine = startDockerd();
    if (await engine.answers()) return { ok: true, why: '', stop: () => engine.stop() };
    await engine.stop();
    why = `dockerd was started ${attempt} times and did not answer; its last lines:\n${engine.log()}`;
  }
  console.error('The Docker engine could not be started here, so its tests will be skipped.');
  return none(why);
}

const dockerListens = () =>
  new Promise((resolve) => {
    const s = connect('/var/run/docker.sock', () => {
      s.destroy();
      resolve(true);
    });
    s.once('error', () => resolve(false));
  });

const DOCKERD_LOG = '.cache/dockerd.log';
/** How long an engine gets to answer: the first start on a machine makes its storage. */
const DOCKERD_MS = 60_000;

function startDockerd() {
  const log = openSync(DOCKERD_LOG, 'w'),
    child = spawn('dockerd', [], { stdio: ['ignore', log, log], detached: true });
  closeSync(log);
  child.unref();
  let dead = false;
  const ended = new Promise((done) => {
    const end = () => {
      dead = true;
      done();
    };
    child.once('exit', end).once('error', end);
  });
  return {
    async answers() {
      for (const until = Date.now() + DOCKERD_MS; Date.now() < until && !dead;) {
        if (await dockerAnswers()) return true;
        await new Promise((r) => setTimeout(r, 200));
      }
      return false;
    },
    async stop() {
      if (dead) return;
      // Referenced again: nothing else may be left to keep this process waiting for the engine's end.
      child.ref();
      const timer = setTimeout(() => child.kill('SIGKILL'), 15_000);
      child.kill('SIGTERM');
      await ended;
      clearTimeout(timer);
    },
    log: () => readFileSync(DOCKERD_LOG, 'utf8').split('\n').slice(-12).join('\n'),
  };
}

/**
 * Removes the process ids that a killed engine left behind. Where another process has such a number by now, as on a
 * machine that goes on from a picture of its disk, dockerd takes it for an engine and ends.
 */
function forgetDeadDocker() {
  for (const [file, name] of [
    ['/var/run/docker.pid', 'dockerd'],
    ['/var/run/docker/containerd/containerd.pid', 'containerd'],
  ]) {
    const pid = readOr(file)?.trim();
    if (pid && readOr(`/proc/${pid}/comm`)?.trim() !== name) rmSync(file, { force: true });
  }
}
const readOr = (file) => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
};

/** What local desktops need; an ordinary user builds their image inside a user namespace, which takes newuidmap. */
export const LOCAL_PACKAGES = [
  ['bwrap', 'bubblewrap'],
  ['mmdebstrap', 'mmdebstrap'],
  ...(isRoot() ? [] : [['newuidmap', 'uidmap']]),
];
export const DOCKER_PACKAGES = [
  ['dockerd', 'docker.io'],
  ['iptables', 'iptables'],
  ['mmdebstrap', 'mmdebstrap'],
];
/** The reference of the trainer's test against autograd. */
export const TORCH_PACKAGES = [['/usr/lib/python3/dist-packages/torch/__init__.py', 'python3-torch']];
/** Debian's Python makes no virtual environments by itself; those that read our exports back live in one. */
export const VENV_PACKAGES = [
  [() => spawnSync('python3', ['-c', 'import venv, ensurepip']).status === 0, 'python3-venv'],
];
