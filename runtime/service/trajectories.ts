import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { StudioError, errorCode, id, messageOf, withToldPrompts, type RolloutId } from '../domain/index.js';
import { recordsOf } from '../interchange/stepRecord.js';
import * as m from '../protocol/methods.js';
import { serializeTrajectory } from '../protocol/trajectoryFile.js';
import type { FrameLink, TrajectoryView } from '../protocol/types.js';
import { annotatedOf } from '../annotations/facts.js';
import { partView } from '../annotations/revise.js';
import { listTrajectories, withMarks } from '../queries/rows.js';
import { strips } from '../queries/failures.js';
import { lastFrames, trajectoryColumns } from '../queries/table.js';
import { groupView } from '../queries/trajectory.js';
import { interpreterOf } from './interpreter.js';
import { noPart, recorded } from './annotator.js';
import { schemas, type Handlers } from './params.js';
import type { Thumbnails } from './thumbnails.js';
import type { OpenRun, Studio } from './studio.js';

/** Finds a trajectory as recorded; for a part behind a split, its recorded steps. */
export type FindView = (
  r: OpenRun,
  p: { readonly run: string; readonly rollout: string },
) => Promise<{ readonly view: TrajectoryView; readonly root: RolloutId }>;
export const findView =
  (s: Studio): FindView =>
  async (r, p) => {
    const f = await recorded(r, p.rollout),
      line = await s.annotations.line(p.run, f.root),
      a = annotatedOf(f.root, line)[f.place];
    if (!a) throw noPart(p.rollout);
    const view =
      f.place === 0 ? { ...f.view, row: withMarks(f.view.row, await s.annotations.marks(p.run)) } : partView(f.view, a);
    return { view, root: id<RolloutId>(f.root) };
  };

/** Lists, single trajectories, groups, files, pictures. */
export function trajectoryHandlers(h: Handlers, s: Studio, thumbs: Thumbnails): void {
  const found = findView(s);
  h.on(m.listTrajectories, schemas.listTrajectories, (p) =>
    s.read(p.run, async (r) => listTrajectories(r.reader, p, r.alive, await s.annotations.marks(p.run))),
  );
  h.on(m.trajectoryColumns, schemas.columns, (p) =>
    s.read(p.run, async (r) => trajectoryColumns(r.reader, p, r.alive, await s.annotations.marks(p.run))),
  );
  h.on(m.trajectoryFrames, schemas.lastFrames, (p) =>
    s.read(p.run, async (r) => ({ frames: await lastFrames(r.reader, p.rollouts) })),
  );
  h.on(m.trajectoryStrips, schemas.strips, (p) =>
    s.read(p.run, async (r) => ({ strips: await strips(r.reader, p.rollouts) })),
  );
  h.on(m.getTrajectory, schemas.trajectory, (p) =>
    s.read(p.run, async (r) => {
      const { view } = await found(r, p);
      return r.session || r.alive ? view : { ...view, over: true };
    }),
  );
  h.on(m.getGroup, schemas.group, (p) =>
    s.read(p.run, (r) => groupView(r.reader, p.group, { alive: r.alive, interpreter: interpreterOf(r.facts) })),
  );
  h.on(m.exportTrajectory, schemas.exportTrajectory, (p) =>
    s.read(p.run, async (r) => {
      const { view: t, root } = await found(r, p),
        records = await recordsIn(r, root, t);
      if (p.file === undefined) return { text: serializeTrajectory(t, { records }) };
      return { file: await writeTrajectory(t, resolve(p.file), (f) => r.reader.frames.read(f), records) };
    }),
  );
  h.on(m.thumbnails, schemas.thumbnails, (p) =>
    s.read(p.run, async (r) => ({
      paths: await thumbs.make(p.hashes, (hash) => r.reader.frames.place(hash), p.width),
    })),
  );
}

/** The records that a trainer needs of the steps of a view, as the run recorded them. */
async function recordsIn(r: OpenRun, root: RolloutId, view: TrajectoryView): Promise<Map<number, object>> {
  const shown = new Set(view.steps.map((s) => s.index)),
    recorded = (await r.reader.readSteps(root)).map((s) => s.step);
  return recordsOf(
    withToldPrompts(
      recorded.filter((s) => shown.has(s.index)),
      recorded,
    ),
  );
}

/** Every screen of a trajectory, once. */
export const framesOf = (t: TrajectoryView): FrameLink[] => [
  ...new Map(t.steps.flatMap((s) => [s.frame, ...(s.after ? [s.after] : [])]).map((f) => [f.hash, f])).values(),
];

/**
 * The trajectory as a file, with its frames in `<name>.frames` beside it. Frames are copies, never links: who edits one
 * must not change the run.
 */
export async function writeTrajectory(
  t: TrajectoryView,
  file: string,
  read: (f: FrameLink) => Promise<Buffer>,
  records?: ReadonlyMap<number, object>,
): Promise<string> {
  const folder = `${file
      .split(/[\\/]/)
      .at(-1)!
      .replace(/\.traj\.jsonl$|\.jsonl$/, '')}.frames`,
    dir = join(dirname(file), folder);
  try {
    await mkdir(dir, { recursive: true });
    for (const f of framesOf(t)) {
      // First: what is read has a hash for a name, and no path that leads elsewhere.
      const png = await read(f),
        to = join(dir, f.hash.slice(0, 2), `${f.hash}.png`);
      await mkdir(dirname(to), { recursive: true });
      await writeFile(to, png, { flag: 'wx' }).catch((e: unknown) => {
        if (errorCode(e) !== 'EEXIST') throw e;
      });
    }
    await writeFile(file, serializeTrajectory(t, { framesDir: folder, records }));
  } catch (e) {
    throw new StudioError(
      'store.io',
      `The trajectory cannot be written to ${file}: ${messageOf(e)}.`,
      'Choose another place, or free some space.',
      { cause: e },
    );
  }
  return file;
}
