import type { AlertKind } from '../../domain/index.js';
import { post, runProgram } from './channels.js';
import { noticeOf, onPath } from './desktopNotice.js';

/** Targets of alerts, by the settings of this machine or the command line; never by a workspace or a run file. */
export interface AlertTargets {
  /** A program, run without a shell and without arguments; '': none. */
  readonly command: string;
  /** An http(s) address; '': none. */
  readonly webhook: string;
  /** A notification of the operating system. */
  readonly desktop: boolean;
}
export const noTargets: AlertTargets = { command: '', webhook: '', desktop: false };
export interface OutgoingAlert {
  /** Id of the run; '' for one that was never begun. */
  readonly id: string;
  readonly name: string;
  readonly kind: AlertKind;
  readonly message: string;
  /** ms since the epoch. */
  readonly at: number;
}
/** Time limit for one program or server. */
const mostMs = 30_000,
  /** Most alerts that wait behind one that hangs; more than a run ever sends. */
  mostWaiting = 100;

/** The text that leaves this machine: run, kind and words; no path, no configuration. */
export const alertBody = ({ id, name, kind, message, at }: OutgoingAlert): string =>
  JSON.stringify({ run: id, name, kind, message, at: new Date(at).toISOString() });

/**
 * Sends alerts one after another, each once, whether or not a window is open. A failure is logged and not retried,
 * because a command may have done half of its work.
 */
export class AlertSender {
  readonly #warn: (message: string) => void;
  readonly #ms: number;
  readonly #platform: NodeJS.Platform;
  readonly #end = new AbortController();
  /** Targets of the command line or the environment, used where a window names none. */
  readonly #own: AlertTargets;
  #targets: AlertTargets;
  #last: Promise<void> = Promise.resolve();
  #waiting = 0;
  #noDesktop = false;

  constructor(o: {
    readonly warn: (message: string) => void;
    readonly targets?: AlertTargets;
    readonly deadlineMs?: number;
    readonly platform?: NodeJS.Platform;
  }) {
    this.#warn = o.warn;
    this.#ms = o.deadlineMs ?? mostMs;
    this.#platform = o.platform ?? process.platform;
    this.#targets = this.#own = o.targets ?? noTargets;
  }

  /** Replaces the targets by those of a window's settings. */
  use(t: AlertTargets): void {
    const own = this.#own;
    this.#targets = {
      command: t.command || own.command,
      webhook: t.webhook || own.webhook,
      desktop: t.desktop || own.desktop,
    };
  }

  send(a: OutgoingAlert): void {
    const to = this.#targets;
    if (this.#end.signal.aborted || (to.command === '' && to.webhook === '' && !to.desktop)) return;
    if (this.#waiting >= mostWaiting) {
      this.#warn(`an alert is not passed on, since ${mostWaiting} others wait: ${a.name}: ${a.message}`);
      return;
    }
    this.#waiting++;
    this.#last = this.#last.then(() => this.#sendNow(a, to)).finally(() => void this.#waiting--);
  }
  /** Resolves when everything sent so far has gone out or failed; with `now` what waits is dropped. */
  async close(now: boolean): Promise<void> {
    if (now) this.#end.abort();
    else await this.#last;
  }

  async #sendNow(a: OutgoingAlert, to: AlertTargets): Promise<void> {
    if (this.#end.signal.aborted) return;
    const body = alertBody(a),
      failed = (what: string) => (e: unknown) => this.#warn(`${what}: ${e instanceof Error ? e.message : String(e)}`);
    await Promise.all([
      to.command === '' ||
        runProgram(to.command, [], { input: body, ms: this.#ms }).catch(failed('the command for alerts')),
      to.webhook === '' || post(to.webhook, body, this.#ms, this.#end.signal).catch(failed('the webhook for alerts')),
      to.desktop && this.#notify(a).catch(failed('the desktop notification for alerts')),
    ]);
  }
  async #notify(a: OutgoingAlert): Promise<void> {
    const notice = noticeOf(this.#platform, a.name, a.message),
      program = notice && (await onPath(notice.program));
    if (notice && program) {
      await runProgram(program, notice.args, { input: '', env: notice.env, ms: this.#ms });
      return;
    }
    if (!this.#noDesktop)
      this.#warn(
        notice
          ? `no desktop notifications: ${notice.program} is not on this machine's PATH`
          : `no desktop notifications on ${this.#platform}`,
      );
    this.#noDesktop = true;
  }
}
