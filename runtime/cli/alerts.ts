import { toRunError } from '../domain/index.js';
import type { Reporter } from '../run/reporter.js';
import type { TrainResult } from '../run/trainRun.js';
import { AlertSender, type AlertTargets } from '../service/alerts/alertSender.js';
import { endWords } from '../service/alerts/endWords.js';

/**
 * Passes on the alerts of `work`, a run of this process, and its end; resolves or rejects as `work` does when they have
 * gone out.
 */
export async function withAlertsSent(
  run: { readonly id: string; readonly name: string },
  o: { readonly targets: AlertTargets; readonly reporter: Reporter },
  work: (reporter: Reporter) => Promise<TrainResult>,
): Promise<TrainResult> {
  const { reporter, targets } = o,
    sender = new AlertSender({ warn: (text) => reporter.note(text), targets }),
    ended = (message: string): void => sender.send({ ...run, kind: 'finished', message, at: Date.now() });
  try {
    const r = await work({
      status: (s) => reporter.status(s),
      note: (text, data) => reporter.note(text, data),
      end: () => reporter.end(),
      alert: (a) => sender.send({ ...run, ...a, at: Date.now() }),
    });
    ended(
      endWords({
        state: r.stopped === 'signal' ? 'stopped' : 'finished',
        rollouts: r.rollouts,
        lastEval: r.points.at(-1),
      }),
    );
    return r;
  } catch (e) {
    const { message, remedy } = toRunError(e);
    ended(`failed: ${message} ${remedy}`.trim());
    throw e;
  } finally {
    await sender.close(false);
  }
}
