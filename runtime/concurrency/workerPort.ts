import { readlinkSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { parentPort, type MessagePort } from 'node:worker_threads';

/**
 * Body of a worker thread that takes one message after the other: each begins when the one before has been handled.
 * `handle` must not reject. `name` is what the worker is called where it is started outside a thread.
 */
export function oneByOne<M>(name: string, handle: (message: M, port: MessagePort) => Promise<void>): void {
  const port = portOf(name);
  let chain: Promise<void> = Promise.resolve();
  port.on('message', (message: M) => {
    chain = chain.then(() => handle(message, port));
  });
}

/** The port to whoever started this thread. */
export function portOf(name: string): MessagePort {
  if (!parentPort) throw new Error(`the ${name} worker runs only in a worker thread`);
  return parentPort;
}

/** How much more willingly than the main thread a worker waits for the processor (nice). */
const BEHIND_MAIN = 5;
/**
 * This thread waits for the processor rather than the main one, which everything else waits for. On Linux, where threads
 * have priorities of their own; elsewhere nothing happens.
 */
export function behindMain(): void {
  if (process.platform !== 'linux') return;
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
    setPriority(thread, Math.min(19, getPriority(thread) + BEHIND_MAIN));
  } catch {
    // Without /proc it is as urgent as the others.
  }
}
