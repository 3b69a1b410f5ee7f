import { stat } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { toRunError } from '../domain/index.js';
import * as m from '../protocol/methods.js';
import type { RunSummary } from '../protocol/types.js';
import { evaluateCheckpoint } from '../run/evaluateCheckpoint.js';
import { checkpoints, evalPoints } from '../queries/overview.js';
import { untriedTasks, taskRows } from '../queries/tasks.js';
import { timelineOf } from '../queries/timeline.js';
import { nextSeq } from '../queries/trajectory.js';
import { listRunFolders } from '../run/runFolders.js';
import { suiteFamilies } from './facts.js';
import { planResume, planStart } from './runSession.js';
import { schemas, type Handlers } from './params.js';
import type { Studio } from './studio.js';
import { usedMs } from './usedTime.js';
import { gone } from './types.js';

/** run/start, resume, stop, pause, unpause, list, get, check, evaluate; task/list. */
export function runHandlers(h: Handlers, s: Studio): void {
  h.on(m.startRun, schemas.startRun, async (p, c) => {
    s.assertIdle();
    const x = await s.begin(planStart(p), unwanted(c.signal));
    return { run: x.run, id: x.plan.run };
  });
  h.on(m.resumeRun, schemas.resumeRun, async (p, c) => {
    s.assertIdle();
    const { more } = p,
      minutes = more === undefined ? p.minutes : more + (await s.read(p.run, (r) => usedMs(r.reader))) / 60_000,
      x = await s.begin(await planResume(resolve(p.run), minutes, more !== undefined), unwanted(c.signal));
    // A run that was paused when a daemon ended, and could not be resumed then, goes on now.
    await s.activeRuns.pause(x.run, false);
    return { run: x.run, id: x.plan.run };
  });
  h.on(m.stopRun, schemas.stopRun, async (p) => {
    const session = s.active(p.run);
    s.endActive();
    await session.stop(p.now ?? false);
    await s.activeRuns.written();
    return s.summary(p.run);
  });
  h.on(m.pauseRun, schemas.run, async (p) => {
    const session = s.active(p.run);
    session.pause();
    await s.activeRuns.pause(session.run, true);
    return {};
  });
  h.on(m.unpauseRun, schemas.run, async (p) => {
    const session = s.active(p.run);
    session.unpause();
    await s.activeRuns.pause(session.run, false);
    return {};
  });
  h.on(m.listRuns, schemas.listRuns, async (p) => ({ runs: await list(s, p.roots) }));
  h.on(m.getRun, schemas.run, (p) =>
    s.read(p.run, async (r) => {
      // First of what the index is asked, which answers in turn: what happens meanwhile comes again as events.
      const [seq, summary, ledger, evals, tasks, timeline, kept] = await Promise.all([
        nextSeq(r.reader),
        s.summary(p.run),
        s.ledgerOf(r),
        evalPoints(r.reader),
        taskRows(r.reader, r.facts, r.session?.stats()),
        timelineOf(r.reader),
        checkpoints(r.reader),
      ]);
      return {
        summary,
        ledger,
        evals,
        tasks,
        tasksUnread: r.facts.unread,
        timeline,
        config: r.reader.meta.config ?? {},
        checkpoints: kept,
        seq,
      };
    }),
  );
  h.on(m.checkRun, schemas.run, async (p) => ({ damage: await s.damage.of(resolve(p.run)) }));
  h.on(m.listTasks, schemas.listTasks, (p) =>
    p.run === undefined
      ? { tasks: untriedTasks(suiteFamilies()) }
      : s.read(p.run, async (r) => ({ tasks: await taskRows(r.reader, r.facts, r.session?.stats(), p.runnable) })),
  );
  h.on(m.evaluate, schemas.evaluate, async (p, c) => {
    s.assertIdle();
    return s.job(
      `${p.run} is being evaluated.`,
      c.signal,
      (signal) =>
        evaluateCheckpoint({
          ...p,
          dir: resolve(p.run),
          entry: s.entry,
          signal,
          onProgress: (x) => {
            c.notify(m.evaluateProgress.method, { run: p.run, ...x });
          },
          onNote: (text) => {
            s.log('warn', `Evaluation of ${p.run}: ${text}`);
          },
        }),
      { exclusive: true },
    );
  });
}

/** Fires when a start is cancelled, but not when its window went away meanwhile: training survives that. */
function unwanted(signal: AbortSignal): AbortSignal {
  const out = new AbortController(),
    hear = (): void => {
      if (signal.reason !== gone) out.abort();
    };
  if (signal.aborted) hear();
  else signal.addEventListener('abort', hear, { once: true });
  return out.signal;
}

/**
 * Run folders under these roots, or the roots themselves where they are one; newest first. One that cannot be read is
 * listed with what is wrong with it.
 */
async function list(s: Studio, roots: readonly string[]): Promise<RunSummary[]> {
  const dirs = new Set<string>();
  for (const root of roots) {
    const dir = resolve(root);
    if (existsSync(join(dir, 'run.json'))) dirs.add(dir);
    else for (const d of await listRunFolders(dir, { damaged: true })) dirs.add(resolve(d));
  }
  const out: RunSummary[] = [],
    todo = [...dirs];
  const worker = async (): Promise<void> => {
    for (let dir = todo.shift(); dir !== undefined; dir = todo.shift())
      out.push(await s.summary(dir).catch(async (e: unknown): Promise<RunSummary> => damaged(dir!, e)));
  };
  // Two at a time: each opens an index.
  await Promise.all([worker(), worker()]);
  return out.sort((a, b) => b.createdAt - a.createdAt || (a.run < b.run ? 1 : -1));
}
async function damaged(run: string, e: unknown): Promise<RunSummary> {
  const createdAt = await stat(run).then(
      (x) => x.birthtimeMs,
      () => 0,
    ),
    id = run.split(/[\\/]/).at(-1) ?? run;
  return {
    run,
    id,
    name: id,
    createdAt,
    state: 'interrupted',
    rollouts: 0,
    version: 0,
    evals: [],
    damaged: toRunError(e),
  };
}
