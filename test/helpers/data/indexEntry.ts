/**
 * What a run's store starts threads of, as runtime/main.ts does for their roles: a bundle of them does not need the other
 * rooms.
 */
import { workerData } from 'node:worker_threads';
import { runIndexWorker } from '../../../runtime/data/store/indexWorker.js';
import { runScreenWorker } from '../../../runtime/data/store/screenWorker.js';

if ((workerData as { readonly role: string }).role === '__screens') runScreenWorker();
else await runIndexWorker();
