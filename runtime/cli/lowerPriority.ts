import { readdirSync, writeFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { errorCode } from '../domain/index.js';

/** A tenth of the processor share of other work; all of it when there is no other work. */
const NICE = 10;
/**
 * The kernel allows ten changes of a session's priority a second on the whole machine, and several children start at
 * once.
 */
const AGAIN_MS = 150,
  TRIES = 20;

/**
 * Lowers the priority of a process that computes beside an editor. Call it before anything else: threads inherit the
 * priority of the thread that starts them.
 */
export function lowerPriority(): void {
  const nice = Math.min(19, getPriority() + NICE);
  try {
    setPriority(nice);
  } catch {
    /* it is only slower for others */
  }
  if (process.platform !== 'linux') return;
  // There a priority is a thread's own, and some threads are there already.
  try {
    for (const thread of readdirSync('/proc/self/task')) setPriority(Number(thread), nice);
  } catch {
    /* one has ended */
  }
  // Priorities count within a session only, where sessions are scheduled as groups.
  const session = (left: number): void => {
    try {
      writeFileSync('/proc/self/autogroup', String(NICE));
    } catch (e) {
      if (errorCode(e) === 'EAGAIN' && left > 0)
        setTimeout(() => {
          session(left - 1);
        }, AGAIN_MS).unref();
    }
  };
  session(TRIES);
}
