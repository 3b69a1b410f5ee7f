import { ignoreFailure } from '../../domain/index.js';
import { spawn, type ChildProcess } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { AgentClient } from '../agentClient.js';
import { NAME_VARIABLE } from './sandboxRecords.js';

/** How long bubblewrap may take to say its PID 1, and to follow it, before it is killed itself. */
const FOLLOW_MS = 5000;

export interface SandboxCommand {
  readonly file: string;
  readonly args: readonly string[];
  /** Variables that what stands in front of bubblewrap needs; nothing of them gets inside. */
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * bubblewrap and the PID 1 it starts. Descriptor 0 is a line that PID 1 holds on to: when it is cut, by us or because
 * this process is gone, PID 1 ends and everything in the sandbox with it. 3 carries the agent's code, 4 brings back the
 * pid of PID 1.
 */
export class SandboxProcess {
  /** PID 1, as this machine counts. Stays open when bubblewrap ends first: see `died`. */
  readonly init: Promise<number>;
  /** bubblewrap has ended. */
  readonly ended: Promise<void>;
  /** Rejects when it has. */
  readonly died: Promise<never>;
  stderr = '';
  /** Not hidden: tests end it. */
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
    for (const s of [code, child.stdin!]) s.on('error', () => undefined); // its end says why
    code.end(agentCode);
    this.init = new Promise((resolve) => {
      // JSON in several writes: the pipe must stay open, or bubblewrap dies of the next one.
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

  /** The agent says "ready" on its standard error once it listens. */
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
   * Ends the sandbox by its PID 1, as soon as that is known; bubblewrap follows and reaps it. The other way round would
   * not do: bubblewrap ties PID 1 to itself as the last of its set-up (--die-with-parent), and killed before, it leaves
   * an orphaned sandbox that keeps this process's pipes open.
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
