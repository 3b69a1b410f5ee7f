import type { MetricJob } from './job.js';
import { evaluate } from './job.js';
import { portOf } from '../../concurrency/workerPort.js';

/** Body of the metric worker: reports that it has started, then answers one job after the other. */
export function runMetricWorker(): void {
  const port = portOf('metric');
  // Nobody reads where in a metric an error came from; parsers make many.
  Error.stackTraceLimit = 0;
  port.on('message', (job: MetricJob) => {
    void evaluate(job).then((done) => {
      port.postMessage(done);
    });
  });
  port.postMessage('ready');
}
