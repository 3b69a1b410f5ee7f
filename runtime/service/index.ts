import { StudioError, toRunError } from '../domain/index.js';
import { parseRunFile } from '../config/index.js';
import { reapLeftovers } from '../cluster/provide.js';
import { annotationHandlers } from './annotations.js';
import { compareHandlers } from './compareRuns.js';
import { controlHandlers } from './control.js';
import { desktopHandlers } from './desktops.js';
import { events, head } from './events.js';
import { interchangeHandlers } from './interchange.js';
import { machineHandlers } from './machine.js';
import { metricHandlers } from './metrics.js';
import { Handlers } from './params.js';
import { pictureHandlers } from './pictures.js';
import { poolHandlers } from './pool.js';
import type { Recovered } from '../protocol/activeRuns.js';
import { recoverRuns } from './recovery.js';
import { queueHandlers, RunQueue } from './runQueue.js';
import { runFactHandlers } from './runFacts.js';
import { runHandlers } from './runs.js';
import { Studio } from './studio.js';
import { Thumbnails } from './thumbnails.js';
import { shareHandlers } from './share.js';
import { findView, trajectoryHandlers } from './trajectories.js';
import type { StudioService, StudioServiceOptions } from './types.js';
import { watchDesktop } from './watch.js';

export * from './types.js';
export type { AlertTargets } from './alerts/alertSender.js';

/** Everything the daemon can do, without a transport. */
export function createStudioService(o: StudioServiceOptions): StudioService {
  const studio = new Studio(o),
    handlers = new Handlers(),
    thumbs = new Thumbnails(o.entry, o.cacheDir);
  runHandlers(handlers, studio);
  runFactHandlers(handlers, studio);
  metricHandlers(handlers, studio);
  compareHandlers(handlers, studio);
  trajectoryHandlers(handlers, studio, thumbs);
  pictureHandlers(handlers);
  shareHandlers(handlers, studio, findView(studio));
  desktopHandlers(handlers, studio);
  machineHandlers(handlers, studio);
  const queue = new RunQueue(studio, o.storage ?? o.cacheDir);
  queueHandlers(handlers, queue);
  poolHandlers(handlers, studio);
  const recovered: Recovered[] = [];
  studio.onBroadcast((b) => {
    if (b.method === 'run/alert') studio.alerts.send(b.params);
    // A run that goes on has not ended.
    else if (b.method === 'run/recovered' && b.params.outcome !== 'resumed')
      studio.alerts.send({ ...b.params, kind: 'finished' });
  });
  const annotator = annotationHandlers(handlers, studio);
  interchangeHandlers(handlers, studio);
  const control = controlHandlers(handlers, studio, annotator);
  // Desktops outlive a daemon that was killed.
  reapLeftovers(parseRunFile({}).desktops).then(
    (n) => {
      if (n > 0) studio.log('info', `${n} desktops of a process that died were removed.`);
    },
    (e: unknown) => {
      studio.log('warn', `Leftover desktops could not be removed: ${toRunError(e).message}`);
    },
  );
  return {
    handlers: handlers.map,
    head: (run) => head(studio, run),
    events: (q, signal) => events(studio, q, signal),
    watch: async (desktop, w, signal) =>
      Promise.resolve(watchDesktop(studio.own.registryOf(desktop) ?? studio.session?.desktops, desktop, w, signal)),
    onBroadcast: (l) => studio.onBroadcast(l),
    get active() {
      return studio.session ? [studio.session.run] : [];
    },
    get busy() {
      return studio.busy || queue.busy;
    },
    onIdle: (l) => studio.onIdle(l),
    recovered,
    recover: () =>
      recoverRuns(studio, (r) => {
        recovered.push(r);
        studio.log(r.outcome === 'resumed' ? 'info' : 'warn', `Run ${r.id}: ${r.message}`);
        studio.broadcast({ method: 'run/recovered', params: r });
      }).then(() => queue.recover()),
    drain: () => {
      studio.draining = true;
    },
    train: async (plan) => {
      const { error, result } = await (await studio.begin(plan)).ended;
      if (error) throw new StudioError(error.kind, error.message, error.remedy, { details: { ...error.details } });
      return result;
    },
    close: async ({ now, keep }) => {
      // Done at once, before people have let go of their desktops: a run that ends meanwhile is kept, too.
      if (keep) studio.keepActive();
      else studio.endActive();
      await control.close();
      await studio.close(now);
      await thumbs.close();
    },
  };
}
