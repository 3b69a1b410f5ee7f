import { toRunError } from '../domain/index.js';
import { parseRunFile } from '../config/index.js';
import { reapLeftovers } from '../cluster/provide.js';
import { annotationHandlers } from './annotations.js';
import { controlHandlers } from './control.js';
import { desktopHandlers } from './desktops.js';
import { events, head } from './events.js';
import { interchangeHandlers } from './interchange.js';
import { machineHandlers } from './machine.js';
import { metricHandlers } from './metrics.js';
import { Handlers } from './params.js';
import { poolHandlers } from './pool.js';
import { runHandlers } from './runs.js';
import { Studio, type StudioServiceOptions } from './studio.js';
import { Thumbnails } from './thumbnails.js';
import { trajectoryHandlers } from './trajectories.js';
import type { StudioService } from './types.js';
import { watchDesktop } from './watch.js';

export * from './types.js';
export type { ServiceLog, StudioServiceOptions } from './studio.js';

/** Everything the daemon can do, without a transport. */
export function createStudioService(o: StudioServiceOptions): StudioService {
  const studio = new Studio(o),
    handlers = new Handlers(),
    thumbs = new Thumbnails(o.entry, o.cacheDir);
  runHandlers(handlers, studio);
  metricHandlers(handlers, studio);
  trajectoryHandlers(handlers, studio, thumbs);
  desktopHandlers(handlers, studio);
  machineHandlers(handlers, studio);
  poolHandlers(handlers, studio);
  annotationHandlers(handlers, studio);
  interchangeHandlers(handlers, studio);
  const control = controlHandlers(handlers, studio);
  // A daemon that was killed took no desktop with it.
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
      Promise.resolve(
        watchDesktop(
          control.registryOf(desktop) ?? studio.own.registryOf(desktop) ?? studio.session?.desktops,
          desktop,
          w,
          signal,
        ),
      ),
    onBroadcast: (l) => studio.onBroadcast(l),
    get active() {
      return studio.session ? [studio.session.run] : [];
    },
    get busy() {
      return studio.busy;
    },
    onIdle: (l) => studio.onIdle(l),
    close: async ({ now }) => {
      await control.close();
      await studio.close(now);
      await thumbs.close();
    },
  };
}
