import { resolve } from 'node:path';
import { z } from 'zod';
import {
  StudioError,
  id,
  type RolloutId,
  type ProviderChoice,
  PROVIDER_CHOICES,
  ServiceError,
} from '../domain/index.js';
import * as m from '../protocol/methods.js';
import type { AnnotationOp, AnnotationView, Replay, RunPath, TrajectoryView } from '../protocol/types.js';
import { actedKey, annotatedOf, partOf } from '../annotations/facts.js';
import { after, before, type AnnotationRecord, type Line } from '../annotations/line.js';
import { candidates, rankForReview } from '../annotations/queue.js';
import { replay } from '../human/replay.js';
import { viewOf } from '../annotations/revise.js';
import { limits, opSchema } from '../annotations/schema.js';
import { validOps } from '../annotations/validate.js';
import { rowsOf } from '../queries/rows.js';
import { trajectoryView } from '../queries/trajectory.js';
import { interpreterOf } from './interpreter.js';
import { fields, schemas as shared, type Handlers } from './params.js';
import type { OpenRun, Studio } from './studio.js';
import type { ServiceContext } from './types.js';

const { run, text } = fields,
  { trajectory } = shared;
const schemas = {
  edit: z.strictObject({ run, rollout: text, base: z.int().min(0), ops: z.array(opSchema).max(limits.ops) }),
  replay: z.strictObject({ run, rollout: text, provider: z.enum(PROVIDER_CHOICES).optional() }),
  queue: z.strictObject({
    run,
    limit: z.int().min(1).max(1000).optional(),
    family: text.optional(),
    includeReviewed: z.boolean().optional(),
  }),
};
/** Items of a queue unless more are asked for. */
const QUEUE = 100;

/** A recorded trajectory, and which part of it was asked for. */
export interface Recorded {
  readonly view: TrajectoryView;
  readonly root: string;
  readonly place: number;
}
/** By its name, or, where there is no such trajectory, by that of a part: `<rollout>/b`. */
export async function recorded(r: OpenRun, rollout: string): Promise<Recorded> {
  const part = partOf(rollout),
    own = part && (await r.reader.index.query('SELECT 1 FROM rollouts WHERE id = ?', [rollout])).length === 0;
  const root = own ? part.root : rollout,
    view = await trajectoryView(r.reader, root, { alive: r.alive, interpreter: interpreterOf(r.facts) }).catch(
      (e: unknown) => {
        throw own && e instanceof ServiceError && e.kind === 'not.found' ? noPart(rollout) : e;
      },
    );
  return { view, root, place: own ? part.place : 0 };
}
export const noPart = (rollout: string): ServiceError =>
  new ServiceError(
    'not.found',
    `There is no trajectory ${rollout} in this run.`,
    'List the trajectories again; the split that made this part may have been undone.',
  );

/** annotation/* and review/*: revisions of finished trajectories, replays, the review queue. */
export function annotationHandlers(h: Handlers, s: Studio): void {
  const find = (dir: RunPath, rollout: string): Promise<Recorded> => s.read(dir, (r) => recorded(r, rollout));
  const show = async (dir: RunPath, f: Recorded, line: Line): Promise<AnnotationView> => {
    const view = viewOf(f.view, dir, line, f.place),
      locked = await lockedOf(s, dir, f);
    if (!view) throw noPart(nameOf(f));
    return { ...view, ...(locked ? { locked } : {}) };
  };
  /**
   * Moves the revision shown, or adds one; told to every window. `build` answers undefined when there is nothing to do.
   */
  const change = async (
    folder: RunPath,
    rollout: string,
    build: (l: Line, f: Recorded) => AnnotationRecord | undefined,
  ): Promise<AnnotationView> => {
    const dir = resolve(folder),
      f = await find(dir, rollout),
      was = await s.annotations.line(dir, f.root);
    if (f.view.live) throw new ServiceError('busy', runningLock.message, runningLock.remedy);
    const line = await s.annotations.write(dir, f.root, (l) => {
      if (!annotatedOf(f.root, l)[f.place]) throw noPart(rollout);
      return build(l, f);
    });
    if (line !== was) tell(s, dir, f.root, was, line);
    return show(dir, viewOf(f.view, dir, line, f.place) ? f : { ...f, place: 0 }, line);
  };

  h.on(m.getAnnotations, trajectory, async (p) => {
    const dir = resolve(p.run),
      f = await find(dir, p.rollout);
    return show(dir, f, await s.annotations.line(dir, f.root));
  });
  h.on(m.editAnnotations, schemas.edit, (p) =>
    change(p.run, p.rollout, (l, f) => {
      if (p.base !== l.head)
        throw new ServiceError(
          'busy',
          `This edit is of revision ${p.base}, but revision ${l.head} is shown by now: another window edited it.`,
          'Look at the newer revision and edit that.',
        );
      const ops = validOps(f.view.steps, f.root, l, f.place, p.ops as AnnotationOp[]);
      return {
        type: 'edit',
        rollout: f.root,
        part: annotatedOf(f.root, l)[f.place]!.from,
        revision: l.last + 1,
        base: l.head,
        at: Date.now(),
        ops,
      };
    }),
  );
  const move =
    (to: (l: Line) => number | undefined) =>
    (p: { readonly run: string; readonly rollout: string }): Promise<AnnotationView> =>
      change(p.run, p.rollout, (l, f) => {
        const revision = to(l);
        return revision === undefined ? undefined : { type: 'head', rollout: f.root, revision, at: Date.now() };
      });
  h.on(m.undoAnnotation, trajectory, move(before));
  h.on(m.redoAnnotation, trajectory, move(after));
  h.on(m.replayTrajectory, schemas.replay, (p, c) =>
    s.job(`A replay in ${p.run} is under way.`, c.signal, (signal) => replayed(s, p, c, signal)),
  );

  h.on(m.reviewQueue, schemas.queue, (p) =>
    s.read(p.run, async (r) => {
      const marks = await s.annotations.marks(p.run),
        all = await candidates(r.reader, marks, p.family),
        ranked = rankForReview(all, (f) => r.facts.families.get(f)?.infeasible ?? false);
      const items = (p.includeReviewed ? ranked : ranked.filter((x) => !x.reviewed)).slice(0, p.limit ?? QUEUE),
        rows = await rowsOf(
          r.reader,
          items.map((x) => x.rollout),
          r.alive,
        );
      return {
        items: items.flatMap(({ rollout, ...x }) => {
          const row = rows.get(rollout),
            annotated = marks.get(rollout);
          return row ? [{ row: annotated ? { ...row, annotated } : row, ...x }] : [];
        }),
        total: all.length,
        reviewed: all.filter((x) => x.reviewed).length,
      };
    }),
  );

  async function replayed(
    st: Studio,
    p: { readonly run: string; readonly rollout: string; readonly provider?: ProviderChoice | undefined },
    c: ServiceContext,
    signal: AbortSignal,
  ): Promise<AnnotationView> {
    const dir = resolve(p.run),
      f = await find(dir, p.rollout),
      line = await st.annotations.line(dir, f.root),
      view = await show(dir, f, line),
      a = annotatedOf(f.root, line)[f.place]!;
    if (view.locked) throw new ServiceError('busy', view.locked.message, view.locked.remedy);
    if (a.from > 0)
      throw new ServiceError(
        'params.invalid',
        `${view.rollout} begins in the middle of ${f.root}: no fresh desktop is in the state it begins with.`,
        `Replay ${f.root}, or undo the split.`,
      );
    // What stands in the way of recording it is said before a desktop is started.
    const writer = await st.writers.open(dir);
    try {
      const name = await st.read(dir, (r) => freeName(r, `replay/${view.rollout}@${view.revision}`)),
        key = actedKey(a);
      const t = await replay(st.own, {
        view,
        config: writer.config,
        provider: p.provider,
        frames: writer.frames,
        id: name,
        signal,
        onProgress: (x) => {
          c.notify(m.replayProgress.method, { run: p.run, rollout: p.rollout, ...x });
        },
      });
      const twin = line.replays.find((x) => x.part === a.from && x.acted === key && x.replay.pooled)?.replay.rollout;
      // Acted out twice it would only be chosen twice as often; of evaluations nothing may be learnt.
      const keptOut =
        view.trajectory.row.provenance === 'probe'
          ? 'it is an episode of an evaluation, and learning from it would spoil the next'
          : twin && `the same edits joined as ${twin}`;
      const kept: Replay =
        t.outcome.kind === 'error'
          ? { revision: view.revision, at: t.endedAt, outcome: 'error', error: t.outcome.error }
          : {
              revision: view.revision,
              at: t.endedAt,
              rollout: t.id,
              outcome: t.outcome.kind,
              reward: t.outcome.reward,
              ...(t.outcome.report ? { report: t.outcome.report } : {}),
              ...(await writer
                .record(t, keptOut ? 'never' : 'auto')
                .then(({ pooled, why, twin: same }): Pick<Replay, 'pooled' | 'why'> =>
                  keptOut && t.outcome.kind === 'success'
                    ? { pooled: false, why: keptOut }
                    : { pooled, ...(why === undefined ? {} : { why: same === undefined ? why : `${why}: ${same}` }) },
                )),
            };
      const now = await st.annotations.write(dir, f.root, () => ({
        type: 'replay',
        rollout: f.root,
        part: a.from,
        acted: key,
        replay: kept,
      }));
      tell(st, dir, f.root, now, now);
      const newest = await find(dir, f.root);
      return await show(dir, { ...newest, place: f.place }, now);
    } finally {
      await writer.close();
    }
  }
}

const nameOf = (f: Recorded): string => (f.place === 0 ? f.root : `${f.root}/${String.fromCharCode(97 + f.place)}`);
const runningLock = { message: 'It is still running.', remedy: 'Annotate it when it has ended.' };
async function lockedOf(s: Studio, dir: RunPath, f: Recorded): Promise<AnnotationView['locked']> {
  return f.view.live ? runningLock : s.annotations.locked(dir);
}

/** Every window that may show the trajectory or a part of it, before or after. */
function tell(s: Studio, dir: RunPath, root: string, was: Line, now: Line): void {
  const names = new Set([...annotatedOf(root, was), ...annotatedOf(root, now)].map((a) => a.rollout));
  for (const rollout of names)
    s.broadcast({ method: 'annotation/changed', params: { run: dir, rollout, revision: now.head } });
}

/** A revision may be replayed again. */
async function freeName(r: OpenRun, wanted: string): Promise<RolloutId> {
  for (let n = 1; n < 10_000; n++) {
    const name = n === 1 ? wanted : `${wanted}.${n}`;
    if ((await r.reader.index.query('SELECT 1 FROM rollouts WHERE id = ?', [name])).length === 0)
      return id<RolloutId>(name);
  }
  throw new StudioError(
    'internal',
    `${wanted} was replayed too often.`,
    'Edit it: a new revision has a name of its own.',
  );
}
