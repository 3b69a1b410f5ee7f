import type { MetricRunner } from '../../../runtime/tasks/index.js';
import { evaluate } from '../../../runtime/tasks/metrics/job.js';

/** Metrics on this thread, without a worker: what production runs in one, so tests of verdicts need no bundle. */
export const localMetrics: MetricRunner = { run: evaluate };
