/**
 * A process that takes the lock of a run folder whenever it is told to, or writes the run: `node lockChild.js <mode>
 * <folder>`. It answers in one line of JSON a command.
 */
import { createInterface } from 'node:readline';
import { lockRun } from '../../../runtime/data/store/runLock.js';
import { RunStore } from '../../../runtime/data/store/runStore.js';
import { StudioError, id } from '../../../runtime/domain/index.js';
import type { RunId } from '../../../runtime/domain/index.js';

const [mode, dir] = process.argv.slice(2) as ['lock' | 'write', string];
const say = (o: object): void => void process.stdout.write(`${JSON.stringify(o)}\n`);
const why = (e: unknown): object => ({ kind: e instanceof StudioError ? e.kind : String(e) });

async function take(): Promise<void> {
  // Several at once: a process contends with itself too.
  const all = await Promise.allSettled(Array.from({ length: 3 }, () => lockRun(dir)));
  const refused = all.flatMap((a) => (a.status === 'rejected' ? [why(a.reason)] : []));
  say({ held: all.filter((a) => a.status === 'fulfilled').length, refused });
}

let store: RunStore | undefined;
async function write(count: number): Promise<void> {
  try {
    store ??= await RunStore.open(dir, { index: 'local', create: { id: id<RunId>('r'), createdAt: 0 } });
    for (let i = 0; i < count; i++) {
      const { seq } = await store.append({ type: 'log', level: 'info', message: `${process.pid} ${i}` });
      say({ acknowledged: `${process.pid} ${i}`, seq });
    }
    say({ done: true });
  } catch (e) {
    say(why(e));
  }
}

say({ ready: process.versions.node });
for await (const line of createInterface({ input: process.stdin })) {
  if (mode === 'lock') await take();
  else await write(Number(line));
}
await store?.close();
