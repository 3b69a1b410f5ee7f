import { ignoreFailure } from '../../concurrency/failures.js';
import { spawn, type ChildProcess } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { AgentClient } from '../agentClient.js';
import { NAME_VARIABLE } from './sandboxRecords.js';

/** How long bubblewrap may take to report its PID 1, and to exit after it, before it is killed. */
const FOLLOW_MS = 5000;

export interface SandboxCommand {
  readonly file: string;
  readonly args: readonly string[];
  /** Variables for the command before bubblewrap; none of them reach the sandbox. */
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * bubblewrap and the PID 1 it starts. Descriptor 0 is a lifeline: when it is closed, by us or because this process is
 * gone, PID 1 ends and everything in the sandbox with it. 3 carries the agent's code, 4 returns the pid of PID 1.
 */
export class SandboxProcess {
  /** The pid of PID 1 on this machine. Never resolves when bubblewrap ends first: see `died`. */
  readonly init: Promise<number>;
  /** bubblewrap has ended. */
  readonly ended: Promise<void>;
  /** Rejects when it has. */
  readonly died: Promise<never>;
  stderr = '';
  /** Public so that tests can end it. */
  readonly child: ChildProcess;
  #known: number | undefined;
  #killed = false;
  #overdue: NodeJS.Timeout | undefined;

  constructor(command: SandboxCommand, name: string, agentCode: Buffer) {
    // Own process group: Ctrl-C in a terminal must not end desktops before the run has ended its rollouts.
    const child = (this.child = spawn(command.file, command.args, {
      detached: true,
      stdio: ['pipe', 'ignore', 'pipe', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', ...command.env, [NAME_VARIABLE]: name },
    }));
    let failed: Error | undefined;
    this.ended = new Promise<void>((resolve) => {
      child.once('exit', () => resolve());
      child.once('error', (e) => {
        failed = e;
        resolve();
      });
    });
    this.died = this.ended.then(() => {
      throw new Error(
        `bubblewrap ended: ${this.stderr.trim() || (failed?.message ?? `exit code ${child.exitCode}, signal ${child.signalCode}`)}`,
      );
    });
    ignoreFailure(this.died, 'it is a failure only for those who wait for the sandbox to start');
    child.stderr!.on('data', (d: Buffer) => {
      this.stderr = (this.stderr + d.toString()).slice(-2000);
    });
    const code = child.stdio[3] as Writable;
    for (const s of [code, child.stdin!]) s.on('error', () => undefined); // the exit reports why
    code.end(agentCode);
    this.init = new Promise((resolve) => {
      // bubblewrap writes the JSON in several parts: the pipe must stay open, or the next write kills it.
      const info = child.stdio[4] as Readable;
      let text = '';
      info
        .on('error', () => undefined)
        .on('data', (d: Buffer) => {
          text += d.toString();
          const m = /"child-pid":\s*(\d+)\D/.exec(text);
          if (!m || this.#known !== undefined) return;
          resolve((this.#known = Number(m[1])));
          if (this.#killed) this.kill();
        });
    });
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /** Connects to the agent, which writes "ready" to its standard error once it listens. */
  async agent(socket: string): Promise<AgentClient> {
    await new Promise<void>((resolve, reject) => {
      const look = (): void => {
        if (this.stderr.includes('dart-agent ready')) {
          this.child.stderr!.off('data', look);
          resolve();
        }
      };
      this.child.stderr!.on('data', look);
      this.died.catch(reject);
      look();
    });
    return AgentClient.open(socket);
  }

  /**
   * Ends the sandbox by its PID 1, as soon as that is known; bubblewrap then exits and reaps it. Killing bubblewrap
   * instead would be wrong: it ties PID 1 to itself only at the end of its set-up (--die-with-parent), and killed
   * before that it leaves an orphaned sandbox that keeps this process's pipes open.
   */
  kill(): void {
    this.#killed = true;
    this.child.stdin?.destroy();
    if (this.#known !== undefined && this.#running)
      try {
        process.kill(this.#known, 'SIGKILL');
      } catch {
        /* it has ended */
      }
    if (this.#overdue || !this.#running) return;
    this.#overdue = setTimeout(() => {
      this.child.kill('SIGKILL');
    }, FOLLOW_MS).unref();
    void this.ended.then(() => {
      clearTimeout(this.#overdue);
    });
  }

  get #running(): boolean {
    return this.child.pid !== undefined && this.child.exitCode === null && this.child.signalCode === null;
  }
}
