import { StudioError, toRunError } from '../../../domain/index.js';

/** One thing that a server must do, or that a run should know about it. */
export interface ProbeCheck {
  readonly name: string;
  readonly ok: boolean;
  /** A run as it is set up cannot do without. */
  readonly needed: boolean;
  /** The observation, in words and figures. */
  readonly detail: string;
}
export interface Finding {
  readonly ok: boolean;
  readonly detail: string;
  /** Nothing could be observed: the server does not do what the check asks for, right or wrong. */
  readonly unseen?: true;
}
export const good = (detail: string): Finding => ({ ok: true, detail });
export const bad = (detail: string): Finding => ({ ok: false, detail });
export const unseen = (detail: string): Finding => ({ ...bad(detail), unseen: true });
export const judged = (ok: boolean, right: string, wrong: string): Finding => (ok ? good(right) : bad(wrong));

/** Collects checks; one that fails to be made has failed. */
export class Checks {
  readonly list: ProbeCheck[] = [];
  readonly #onCheck: ((c: ProbeCheck) => void) | undefined;
  constructor(onCheck?: (c: ProbeCheck) => void) {
    this.#onCheck = onCheck;
  }
  get ok(): boolean {
    return this.list.every((c) => c.ok || !c.needed);
  }
  add(name: string, needed: boolean, f: Finding): boolean {
    const check = { name, ok: f.ok, needed, detail: f.detail };
    this.list.push(check);
    this.#onCheck?.(check);
    return f.ok;
  }
  async make(name: string, needed: boolean, f: () => Promise<Finding>): Promise<boolean> {
    return this.add(name, needed, await tried(f));
  }
}
/** A failure of the server is a finding; being cancelled is not. */
export async function tried(f: () => Promise<Finding>): Promise<Finding> {
  try {
    return await f();
  } catch (e) {
    const { kind, message } = toRunError(e);
    if (kind === 'cancelled' || !(e instanceof StudioError)) throw e;
    return unseen(message);
  }
}
/** The server's words where it refuses a call; undefined where it takes it. */
export async function refusal(f: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await f();
    return undefined;
  } catch (e) {
    const { kind, message } = toRunError(e);
    if (kind === 'cancelled' || !(e instanceof StudioError)) throw e;
    return message;
  }
}
export const figure = (x: number): string => (Number.isFinite(x) ? String(Number(x.toPrecision(3))) : 'no number');
export const percent = (x: number): string => `${figure(100 * x)} %`;
