/**
 * The index worker alone, as runtime/main.ts starts it for the role `__index`: a bundle of it does not need the other
 * rooms.
 */
import { runIndexWorker } from '../../../runtime/data/store/indexWorker.js';

await runIndexWorker();
