import type { MessagePort } from 'node:worker_threads';
import { messageOf, StudioError } from '../../domain/index.js';
import { callNow } from './modelCalls.js';
import { received, type ReadPlace, type ThreadCall, type ThreadDone, type ThreadJob } from './modelThread.js';
import { LateAnswer, UnreadableFile } from './postJson.js';

class TooLong extends Error {}

/** Body of a thread that asks model servers; all calls at once. `read` reads a picture where its store says it is. */
export function serveModelCalls(port: MessagePort, read: ReadPlace): void {
  const running = new Map<number, AbortController>();
  const answer = async ({ id, body, server, ...c }: ThreadCall): Promise<ThreadDone> => {
    const stop = new AbortController();
    running.set(id, stop);
    try {
      const pieces = body.map((p) => received(p, read)),
        tooLong = (): Error => new TooLong();
      return { id, reply: await callNow({ ...c, body: pieces, tooLong, signal: stop.signal }, server) };
    } catch (e) {
      if (e instanceof TooLong) return { id, fault: 'too long' };
      if (e instanceof UnreadableFile) return { id, fault: 'unreadable' };
      if (e instanceof LateAnswer) return { id, late: e.message };
      return e instanceof StudioError ? { id, refused: e.error } : { id, failed: messageOf(e) };
    } finally {
      running.delete(id);
    }
  };
  port.on('message', (j: ThreadJob) => {
    if ('cancel' in j) running.get(j.cancel)?.abort();
    else void answer(j).then((d) => port.postMessage(d));
  });
}
