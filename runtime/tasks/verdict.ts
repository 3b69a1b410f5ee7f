import type { Desktop, ExecOptions, ExecResult } from '../cluster/types.js';
import { StudioError, messageOf } from '../domain/index.js';
import { orUndefined } from '../concurrency/failures.js';
import { Spoiled } from './spoiled.js';

/** All commands of one verdict together, ms that the desktop spends on them: what the policy can draw out. */
const COMMANDS_MS = 120_000;
/** Time limit of one command, ms. */
const COMMAND_MS = 60_000;
/**
 * A verdict from its beginning to its end, ms, with everything that is ours: waiting for a worker of the evaluators
 * behind other desktops, starting one, computing. One that takes longer is an error, never a score.
 */
export const VERDICT_MS = 30 * 60_000;

/** Codes of a desktop that has no process or no memory left to start a command with. */
const NO_ROOM = new Set(['EAGAIN', 'ENOMEM', 'EMFILE', 'ENFILE']);

/** Codes of the agent for files that a desktop's programs have spoilt, so that they cannot be written or run. */
const SPOILT = new Set(
  'ENOSPC EDQUOT EACCES EPERM ENOTDIR EISDIR ENOTREG ENXIO ELOOP ENAMETOOLONG EFBIG ETXTBSY EBUSY'.split(' '),
);

/**
 * Programs that ask the applications of a desktop, or act on them: while one runs, the applications must run too. Its
 * answer is as good as the applications' word.
 */
const ASKS_APPLICATIONS =
  /\b(xdotool|wmctrl|xprop|xwininfo|xclip|xsel|xrandr|xset|xdpyinfo|xwd|scrot|pyautogui|xlib|pyatspi|dogtail|gdbus|dbus-send|dbus|busctl|qdbus|gsettings|dconf|playerctl|pactl|curl|wget|nc|socat|localhost|soffice|libreoffice|unoconv|google-chrome|chromium|firefox|thunderbird|gimp|vlc|kill|pkill|killall|systemctl|sleep|wait)\b|127\.0\.0\.1|\[::1\]|(^|[;&|]\s*)code\b/i;
export const asksApplications = (command: string): boolean => ASKS_APPLICATIONS.test(command);

/**
 * The desktop while it is judged. Commands run as the verifier's, and the programs of the user stand still meanwhile,
 * unless the command asks them something. Every command has a time limit, and what the programs can have spoilt throws
 * Spoiled.
 */
export class VerdictDesktop {
  readonly #desktop: Desktop;
  readonly #now: () => number;
  #spentMs = 0;
  #frozen = false;

  constructor(desktop: Desktop, now: () => number) {
    this.#desktop = desktop;
    this.#now = now;
  }

  /** `what` names the command in messages; what it prints is judged, unless it acts on the desktop as a user does. */
  async exec(
    argv: readonly string[],
    o: ExecOptions,
    what: string,
    needs: 'nothing' | 'applications' | 'acts',
  ): Promise<ExecResult> {
    const left = COMMANDS_MS - this.#spentMs;
    if (left <= 0) throw new Spoiled(`the commands of the verdict did not end within ${COMMANDS_MS / 1000} s`);
    const timeoutMs = Math.min(o.timeoutMs ?? COMMAND_MS, COMMAND_MS, left);
    const r = await this.#blaming(async () => {
      await (needs === 'nothing' ? this.#still() : this.live());
      return this.#timed(timeoutMs, () => this.#desktop.exec(argv, { ...o, timeoutMs, verifier: needs !== 'acts' }));
    }, NO_ROOM);
    if (r.disturbed) throw new Spoiled(`programs of the desktop did not stand still during the command ${what}`);
    if (r.timedOut && !r.stopped)
      throw new Spoiled(`the command ${what} did not end within ${Math.round(timeoutMs / 1000)} s`);
    return r;
  }

  /** Runs a command and counts its time, at most the command's own limit: this process itself may have stood still. */
  async #timed(mostMs: number, command: () => Promise<ExecResult>): Promise<ExecResult> {
    const began = this.#now();
    try {
      return await command();
    } finally {
      this.#spentMs += Math.min(this.#now() - began, mostMs);
    }
  }

  async #still(): Promise<void> {
    if (this.#frozen || !this.#desktop.freeze) return;
    await this.#desktop.freeze();
    this.#frozen = true;
  }
  /** The programs of the user go on, if they stood still. */
  async live(): Promise<void> {
    if (!this.#frozen) return;
    this.#frozen = false;
    await this.#desktop.thaw?.();
  }

  /** Something that acts on the desktop as a user does. */
  async act<T>(run: () => Promise<T>): Promise<T> {
    await this.live();
    return this.#blaming(run, new Set([...NO_ROOM, ...SPOILT]));
  }

  /** Rethrows errors of these codes as Spoiled; those about room only when the user's programs took it. */
  async #blaming<T>(run: () => Promise<T>, codes: ReadonlySet<string>): Promise<T> {
    try {
      return await run();
    } catch (e) {
      const code = refusal(e);
      if (code === undefined || !codes.has(code)) throw e;
      if (!NO_ROOM.has(code)) throw new Spoiled(messageOf(e));
      throw (await this.#hasRoomWithoutThem())
        ? new Spoiled('the programs of the desktop left no room to start a command')
        : e;
    }
  }

  async #hasRoomWithoutThem(): Promise<boolean> {
    if (!this.#desktop.relieve) return false;
    this.#frozen = false;
    const probe = this.#desktop.relieve().then(() => this.#desktop.exec(['true'], { timeoutMs: 5000, verifier: true }));
    return (await orUndefined(probe, 'the desktop itself has no room: the first error says so'))?.code === 0;
  }
}

/** The agent's code of a call that it refused, also where a step says so in its own words. */
function refusal(e: unknown): string | undefined {
  const cause = e instanceof StudioError ? e : e instanceof Error ? e.cause : undefined;
  return cause instanceof StudioError && cause.kind === 'desktop.exec'
    ? String(cause.error.details?.['code'])
    : undefined;
}
