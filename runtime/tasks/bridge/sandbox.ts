import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { bridgeDir, type EvaluatorPlace } from './environment.js';

/** How a worker is started. */
export interface WorkerCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /**
   * Whether it runs without a network, with nothing of this machine but what judging reads, and one writable folder.
   */
  readonly sandboxed: boolean;
}

/**
 * A worker's command line. Evaluators parse what the policy left behind, and a few execute it, so they run inside
 * bubblewrap where there is one. `jobs` is the only folder they may write to.
 */
export async function workerCommand(place: EvaluatorPlace, jobs: string): Promise<WorkerCommand> {
  const script = join(bridgeDir(), 'worker.py'),
    python = [place.python, '-I', '-B', script, ...(place.checkout === undefined ? [] : [place.checkout])],
    env = { PATH: '/usr/local/bin:/usr/bin:/bin', LANG: 'C.UTF-8', TMPDIR: '/tmp', HOME: '/tmp' };
  if (!(await canSandbox()))
    return { file: python[0]!, args: python.slice(1), env: { ...env, TMPDIR: jobs, HOME: jobs }, sandboxed: false };
  const base = dirname(dirname(await realpath(place.python))),
    read = [
      dirname(dirname(place.python)),
      base,
      bridgeDir(),
      ...(place.checkout === undefined ? [] : [place.checkout]),
    ];
  return {
    file: 'bwrap',
    args: [
      ...['--unshare-all', '--die-with-parent', '--new-session', '--cap-drop', 'ALL', '--clearenv'],
      ...Object.entries(env).flatMap(([k, v]) => ['--setenv', k, v]),
      ...['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp'],
      ...SYSTEM.flatMap((p) => ['--ro-bind-try', p, p]),
      ...read.filter((p) => !p.startsWith('/usr/') && p !== '/usr').flatMap((p) => ['--ro-bind', p, p]),
      ...['--bind', jobs, jobs, '--remount-ro', '/', '--chdir', '/', '--', ...python],
    ],
    env: { PATH: process.env['PATH'] },
    sandboxed: true,
  };
}

/** Paths of a system that a Python and its packages read. */
const SYSTEM = [
  '/usr',
  '/bin',
  '/sbin',
  '/lib',
  '/lib64',
  '/etc/ld.so.cache',
  '/etc/alternatives',
  '/etc/fonts',
].concat('/etc/magic', '/etc/mime.types', '/etc/localtime');

let sandboxes: Promise<boolean> | undefined;
/** Whether bubblewrap works here; asked once. */
const canSandbox = (): Promise<boolean> =>
  (sandboxes ??= new Promise((resolve) => {
    if (process.platform !== 'linux' || !existsSync('/usr')) return resolve(false);
    const c = spawn('bwrap', ['--unshare-all', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', 'true'], {
      stdio: 'ignore',
    });
    c.once('error', () => resolve(false));
    c.once('close', (code) => resolve(code === 0));
  }));
