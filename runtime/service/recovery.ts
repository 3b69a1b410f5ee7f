import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pause } from '../concurrency/pause.js';
import { ServiceError, StudioError, toRunError } from '../domain/index.js';
import type { ActiveRun, Recovered } from '../protocol/activeRuns.js';
import { DEATHS, IDLE_DEATHS } from './activeRuns.js';
import { planResume } from './runSession.js';
import type { Studio } from './studio.js';
import { unlessAborted } from './unlessAborted.js';

/** After a reboot Docker may start later than the daemon: how often, and how many ms apart, desktops are tried again. */
const DESKTOP_TRIES = 12;
const DESKTOP_PAUSE_MS = 5000;

/** Goes on with what was active when the last daemon ended; tells `told` of each run. Never rejects. */
export async function recoverRuns(s: Studio, told: (r: Recovered) => void): Promise<void> {
  await s.activeRuns.loaded;
  for (const r of s.activeRuns.runs) {
    if (r.left !== undefined) continue;
    const recovered = await recoverRun(s, r).catch((e: unknown): Omit<Recovered, 'run' | 'id' | 'name' | 'at'> => ({
      outcome: 'failed',
      message: `It was interrupted when the runtime ended, and cannot be resumed: ${toRunError(e).message} ${toRunError(e).remedy}`,
    }));
    if (recovered) told({ run: r.run, id: r.id, name: r.name, at: Date.now(), ...recovered });
  }
}

async function recoverRun(s: Studio, r: ActiveRun): Promise<Omit<Recovered, 'run' | 'id' | 'name' | 'at'> | undefined> {
  const runs = s.activeRuns;
  if (!existsSync(join(r.run, 'run.json'))) {
    if (!existsSync(dirname(r.run))) {
      const why = `It was interrupted when the runtime ended, and ${dirname(r.run)} is not there. If that is on a disk that is not mounted yet, mount it and resume the run.`;
      await runs.leave(r.run, why);
      return { outcome: 'left', message: why };
    }
    await runs.end(r.run);
    return { outcome: 'failed', message: 'It was interrupted when the runtime ended, and its folder is gone.' };
  }
  await runs.died(r.run);
  const deaths = r.deaths + 1,
    idle = r.idleDeaths + 1;
  if (deaths >= DEATHS || idle >= IDLE_DEATHS) {
    const why =
      deaths >= DEATHS
        ? `The runtime ended ${deaths} times in a row while this run was active, so it is left stopped. Check the runtime's log, then resume it.`
        : `The runtime ended ${idle} times while this run was active and learned nothing, so it is left stopped. Check the runtime's log, then resume it.`;
    await runs.leave(r.run, why);
    return { outcome: 'left', message: why };
  }
  try {
    await resume(s, r);
  } catch (e) {
    await runs.survived(r);
    throw e;
  }
  return {
    outcome: 'resumed',
    message: `It was interrupted when the runtime ended, and has been resumed${r.paused ? ', paused as it was' : ''}.`,
  };
}

async function resume(s: Studio, r: ActiveRun): Promise<void> {
  const plan = await planResume(r.run, r.minutes, r.alone);
  for (let tries = 1; ;) {
    try {
      const session = await s.begin(plan);
      if (r.paused) session.pause();
      return;
    } catch (e) {
      // An evaluation or a replay that somebody asked for meanwhile.
      if (e instanceof ServiceError && e.kind === 'busy' && !s.session) {
        await untilIdle(s);
        continue;
      }
      if (toRunError(e).kind !== 'desktop.unavailable' || tries++ === DESKTOP_TRIES) throw e;
      await pause(DESKTOP_PAUSE_MS, s.closing, stopping);
    }
  }
}

/** Rejects with `cancelled` when the runtime stops. */
async function untilIdle(s: Studio): Promise<void> {
  if (!s.busy) return;
  let off = (): void => undefined;
  const idle = new Promise<void>((resolve) => {
    off = s.onIdle(resolve);
  });
  const stopped = (): never => {
    throw stopping();
  };
  await unlessAborted(idle, s.closing).catch(stopped).finally(off);
}

const stopping = (): StudioError =>
  new StudioError('cancelled', 'The runtime is stopping.', 'The next start resumes the run.');
