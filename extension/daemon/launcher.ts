import { errorCode, orUndefined } from '../../runtime/protocol/failures.js';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { exitAlreadyRunning } from '../../runtime/protocol/version.js';
import { backoffMs } from './decide.js';
import { FolderWatch, readDiscovery } from './discovery.js';
import { openSession } from './openSession.js';
import type { Session } from './session.js';
import { DaemonError, type Log } from './types.js';

export interface LaunchOptions {
  readonly storage: string;
  readonly runtime: string;
  readonly node?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly log: Log;
  readonly random: () => number;
  readonly now: () => number;
}
/** A cold start on a busy machine takes seconds; a holder that keeps the lock for longer has died. */
const startMs = 45_000,
  lockAgeMs = 60_000;
/** Standard streams of a daemon: output before its log is open, and native crashes. */
export const outputFile = 'daemon.out.log';

/**
 * Makes sure that a daemon serves `storage`: starts one, or finds the one that another window has just started.
 * Resolves with a connection to it, before any hello. Rejects with `daemon.failed`.
 */
export async function launch(
  o: LaunchOptions,
): Promise<{ readonly session: Session; /** Ours, or somebody else's. */ readonly started: boolean }> {
  const watch = await FolderWatch.open(o.storage),
    deadline = o.now() + startMs;
  const left = (): number => Math.max(0, deadline - o.now());
  try {
    const turn = await watch.until<Session | 'mine'>(async () => ((await takeTurn(o)) ? 'mine' : serving(o)), left());
    if (turn === undefined)
      throw new DaemonError(
        'daemon.failed',
        'Another window has been starting the runtime for too long.',
        'Try again; if this persists, see the log.',
      );
    if (turn !== 'mine') return { session: turn, started: false };
    try {
      const there = await serving(o);
      if (there) return { session: there, started: false };
      for (let attempt = 1; ; attempt++) {
        const { pid, ended } = await start(o);
        let code: number | string | undefined;
        void ended.then((c) => {
          code = c;
        });
        const session = await watch.until(
          async () => {
            if (code !== undefined && code !== exitAlreadyRunning)
              throw await failed(
                o,
                `The runtime ended while it was starting (${typeof code === 'number' ? `code ${code}` : code}).`,
              );
            // Another daemon won, which is as good. If it does not answer, it is starting or stopping: try again.
            const lost = code === exitAlreadyRunning,
              found = await serving(o);
            return lost ? (found ?? 'again') : found;
          },
          left(),
          ended,
        );
        if (session === undefined) throw await failed(o, `The runtime did not answer within ${startMs / 1000} s.`);
        if (session !== 'again') return { session, started: session.record.pid === pid };
        if (left() === 0) throw await failed(o, 'Another runtime holds the lock of this folder and does not answer.');
        const other = await watch.until(() => serving(o), Math.min(left(), backoffMs(attempt, o.random)));
        if (other) return { session: other, started: false };
      }
    } finally {
      await rm(join(o.storage, lockName), { recursive: true, force: true });
    }
  } finally {
    watch.close();
  }
}

/** A connection to the daemon of the record, if it is alive. */
async function serving(o: LaunchOptions): Promise<Session | undefined> {
  const r = await readDiscovery(o.storage);
  return r && orUndefined(openSession(r, o.log), 'a daemon that does not answer is started anew');
}

const lockName = 'start.lock';
/**
 * Only one window starts a daemon at a time. A lock whose owner is dead, or that is older than any start takes, is
 * taken over.
 */
async function takeTurn(o: LaunchOptions): Promise<boolean> {
  const lock = join(o.storage, lockName),
    owner = join(lock, 'pid');
  try {
    await mkdir(lock, { mode: 0o700 });
    await writeFile(owner, String(process.pid));
    return true;
  } catch (e) {
    if (errorCode(e) !== 'EEXIST') throw e;
  }
  const age = o.now() - ((await orUndefined(stat(lock), 'its owner has just removed it'))?.mtimeMs ?? o.now());
  const pid = Number(await readFile(owner, 'utf8').catch(() => '')) || undefined;
  if (age < lockAgeMs && (pid === undefined || alive(pid))) return false;
  // Two windows that get here at once may both get a turn: then the daemons' own lock decides.
  const old = `${lock}.${randomBytes(4).toString('hex')}`;
  try {
    await rename(lock, old);
  } catch {
    return false;
  }
  await rm(old, { recursive: true, force: true });
  return takeTurn(o);
}
export function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (e) {
    return errorCode(e) === 'EPERM';
  }
}

/** Variables that are wrong for a process that outlives this one: debuggers and the editor's own channels. */
const notInherited = [
  'NODE_OPTIONS',
  'NODE_CHANNEL_FD',
  'NODE_UNIQUE_ID',
  'VSCODE_INSPECTOR_OPTIONS',
  'VSCODE_IPC_HOOK',
  'VSCODE_IPC_HOOK_CLI',
  'VSCODE_PID',
  'VSCODE_ESM_ENTRYPOINT',
  'ELECTRON_NO_ATTACH_CONSOLE',
];

/** The token is in neither the arguments nor the environment: the daemon creates it and writes it to its record. */
async function start(o: LaunchOptions): Promise<{
  readonly pid: number | undefined;
  /** Exit code, signal, or why it could not be run. */
  readonly ended: Promise<number | string>;
}> {
  const out = await open(join(o.storage, outputFile), 'w', 0o600);
  try {
    // In the editor execPath is Electron, which is Node only when told so; elsewhere the variable means nothing.
    const env: NodeJS.ProcessEnv = { ...process.env, ...o.env, ELECTRON_RUN_AS_NODE: '1' };
    for (const name of notInherited) delete env[name];
    const child = spawn(o.node ?? process.execPath, [o.runtime, 'serve', o.storage], {
      detached: true,
      stdio: ['ignore', out.fd, out.fd],
      windowsHide: true,
      cwd: o.storage,
      env,
    });
    child.unref();
    o.log('info', `started the runtime (pid ${child.pid ?? 'none'}): ${o.runtime}`);
    return {
      pid: child.pid,
      ended: new Promise((done) => {
        child.once('exit', (code, signal) => done(code ?? signal ?? 'nothing')).once('error', (e) => done(e.message));
      }),
    };
  } finally {
    await out.close();
  }
}

async function failed(o: LaunchOptions, message: string): Promise<DaemonError> {
  const said = (await readFile(join(o.storage, outputFile), 'utf8').catch(() => '')).trim().slice(-2000);
  o.log('error', `${message}${said ? `\n${said}` : ''}`);
  const line = said
    .split('\n')
    .find((l) => /error|could not|cannot/i.test(l))
    ?.trim()
    .slice(0, 300);
  return new DaemonError(
    'daemon.failed',
    line ? `${message} ${line}` : message,
    'Show the log for the reason, then start the runtime again.',
  );
}
