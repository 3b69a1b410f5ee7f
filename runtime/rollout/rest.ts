import { setTimeout as after } from 'node:timers/promises';
import type { Desktop, SettleOptions } from '../cluster/types.js';
import { isStarved } from '../concurrency/starved.js';

/**
 * Time between the two looks, ms: on a very busy machine, input on its way through the kernel (a key to a shell, its
 * answer to the terminal) may find no processor for that long, while every program waits.
 */
export const AGAIN_MS = 150;

/** Longest wait before a task is judged. */
const LAST_MAX_MS = 500;
/** Waits of `LAST_MAX_MS` that a starved desktop gets before a task is judged. */
const STARVED_WAITS = 10;

/** How the screens after an action are waited for. */
export interface RestOptions {
  readonly settle?: SettleOptions | undefined;
  /** A screen must not depend on how fast the machine is: the desktop is asked twice, some time apart. */
  readonly mustRest?: boolean | undefined;
}

/** Waits until the desktop is at rest; false when it did not come to rest in time. */
export async function rest(
  desktop: Pick<Desktop, 'settle'>,
  o: RestOptions,
  wait: () => Promise<unknown> = () => after(AGAIN_MS),
): Promise<boolean> {
  const { settled } = await desktop.settle(o.settle);
  if (!settled || !o.mustRest) return settled;
  await wait();
  return (await desktop.settle(o.settle)).settled;
}

/**
 * Before a task is judged: the last keys may still be on their way to a shell, and their effect would be missed. Takes
 * about a millisecond where no terminal is open.
 */
export async function lastRest(desktop: Pick<Desktop, 'settle'>, signal?: AbortSignal): Promise<void> {
  for (let n = 0; n < STARVED_WAITS; n++) {
    const { settled, starved } = await desktop.settle({ terminalHoldMs: AGAIN_MS, maxMs: LAST_MAX_MS });
    if (settled || !isStarved(starved) || signal?.aborted) return;
  }
}
