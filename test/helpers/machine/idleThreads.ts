import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as after } from 'node:timers/promises';
import type { OrdinaryUser } from './ordinaryUser.js';

/** The pool of libuv is made whole by its first job. */
const IDLE = "require('fs').stat('/', () => {}); setInterval(() => {}, 1e9)";

const threads = (pid: number): number =>
  Number(/^Threads:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]);

export interface IdleThreads {
  readonly pid: number;
  end(): Promise<void>;
}

/** A process with that many idle threads, as an editor or a browser has them; of this user, or of an ordinary one. */
export async function idleThreads(n: number, user?: OrdinaryUser): Promise<IdleThreads> {
  if (user) {
    const p = user.start('env', `UV_THREADPOOL_SIZE=${n}`, 'node', '-e', IDLE);
    while (threads(p.pid) < n) await Promise.race([after(5), p.done.then(failed)]);
    return {
      pid: p.pid,
      end: async () => {
        p.end();
        await p.done;
      },
    };
  }
  const child = spawn(process.execPath, ['-e', IDLE], {
    stdio: 'ignore',
    env: { ...process.env, UV_THREADPOOL_SIZE: String(n) },
  });
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()));
  while (threads(child.pid!) < n) await Promise.race([after(5), gone.then(failed)]);
  return {
    pid: child.pid!,
    end: async () => {
      child.kill('SIGKILL');
      await gone;
    },
  };
}

const failed = (r?: { stderr: string } | void): never => {
  throw new Error(`the idle process ended: ${r?.stderr ?? ''}`);
};
