/** An index worker that dies of every query, like each that takes its place. */
import { parentPort } from 'node:worker_threads';
import { runIndexWorker } from '../../../runtime/data/store/indexWorker.js';

parentPort!.on('message', (m: { do: string }) => {
  if (m.do === 'query') process.exit(3);
});
await runIndexWorker();
