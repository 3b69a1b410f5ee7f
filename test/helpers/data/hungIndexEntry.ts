/**
 * An index worker that hangs: the first as it starts, the second on its first query, for good, as a loop without end
 * does. Each start leaves a line in `<journal>/../starts`.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { runIndexWorker } from '../../../runtime/data/store/indexWorker.js';

const hang = (): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);

const file = join((workerData as { place: { journal: string } }).place.journal, '..', 'starts');
appendFileSync(file, 'start\n');
const starts = readFileSync(file, 'utf8').trim().split('\n').length;
if (starts === 1) hang();
if (starts === 2)
  parentPort!.on('message', (m: { do: string }) => {
    if (m.do === 'query') hang();
  });
await runIndexWorker();
