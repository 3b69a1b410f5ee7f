/**
 * An index worker that dies on its first query: the store must start another. Each start leaves a line in
 * `<journal>/../starts`.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { runIndexWorker } from '../../../runtime/data/store/indexWorker.js';

const file = join((workerData as { place: { journal: string } }).place.journal, '..', 'starts');
appendFileSync(file, 'start\n');
if (readFileSync(file, 'utf8').split('\n').length === 2)
  parentPort!.on('message', (m: { do: string }) => {
    if (m.do === 'query') process.exit(3);
  });
await runIndexWorker();
