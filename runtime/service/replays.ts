import { resolve } from 'node:path';
import { StudioError, ServiceError, id, type RolloutId, type Trajectory } from '../domain/index.js';
import { actedKey, annotatedOf, type Annotated } from '../annotations/facts.js';
import type { Line } from '../annotations/line.js';
import { replay, type ReplayRequest } from '../human/replay.js';
import type { RunWriter } from '../human/runWriter.js';
import type { AnnotationView, Replay } from '../protocol/types.js';
import type { Annotator } from './annotator.js';
import type { OpenRun, Studio } from './studio.js';

/** Acts the shown revision out on a fresh desktop and records what came of it. */
export async function replayRevision(
  s: Studio,
  annotator: Annotator,
  p: { readonly run: string; readonly rollout: string; readonly provider?: ReplayRequest['provider'] },
  o: Pick<ReplayRequest, 'signal' | 'onProgress'>,
): Promise<AnnotationView> {
  const dir = resolve(p.run),
    f = await annotator.find(dir, p.rollout),
    line = await s.annotations.line(dir, f.root),
    view = await annotator.show(dir, f, line),
    a = annotatedOf(f.root, line)[f.place]!;
  mustBeReplayable(view, a);
  // Opened first: an obstacle to recording is reported before a desktop is started.
  const writer = await s.writers.open(dir);
  let name: RolloutId | undefined;
  try {
    name = await s.read(dir, (r) => claimName(r, dir, `replay/${view.rollout}@${view.revision}`));
    const { config, frames } = writer,
      t = await replay(s.own, { view, config, provider: p.provider, frames, entry: s.entry, id: name, ...o }),
      kept = await record(writer, t, view, keptOut(view, a, line));
    const now = await s.annotations.write(dir, f.root, () => ({
      type: 'replay',
      rollout: f.root,
      part: a.from,
      acted: actedKey(a),
      replay: kept,
    }));
    annotator.tell(dir, f.root, now, now);
    const newest = await annotator.find(dir, f.root);
    return await annotator.show(dir, { ...newest, place: f.place }, now);
  } finally {
    if (name !== undefined) claimed.delete(claimOf(dir, name));
    await writer.close();
  }
}

function mustBeReplayable(view: AnnotationView, a: Annotated): void {
  if (view.locked) throw new ServiceError('busy', view.locked.message, view.locked.remedy);
  if (a.from > 0)
    throw new ServiceError(
      'params.invalid',
      `${view.rollout} begins in the middle of ${a.root}: no fresh desktop is in the state it begins with.`,
      `Replay ${a.root}, or undo the split.`,
    );
}

/** Why a success of this revision may not join the pool; undefined when it may. */
function keptOut(view: AnnotationView, a: Annotated, line: Line): string | undefined {
  // Nothing may be learnt from evaluations.
  if (view.trajectory.row.provenance === 'probe')
    return 'it is an episode of an evaluation, and learning from it would spoil the next';
  // Acted out twice it would only be chosen twice as often.
  const key = actedKey(a),
    twin = line.replays.find((x) => x.part === a.from && x.acted === key && x.replay.pooled)?.replay.rollout;
  return twin && `the same edits joined as ${twin}`;
}

async function record(
  writer: RunWriter,
  t: Trajectory,
  view: AnnotationView,
  out: string | undefined,
): Promise<Replay> {
  const { outcome: o } = t,
    base = { revision: view.revision, at: t.endedAt };
  if (o.kind === 'error') return { ...base, outcome: 'error', error: o.error };
  const { pooled, why, twin } = await writer.record(t, out ? 'never' : 'auto'),
    pool: Pick<Replay, 'pooled' | 'why'> =
      out && o.kind === 'success'
        ? { pooled: false, why: out }
        : { pooled, why: why === undefined || twin === undefined ? why : `${why}: ${twin}` };
  const { kind, reward, report } = o;
  return { ...base, rollout: t.id, outcome: kind, reward, report, ...pool };
}

/** Names of replays that are not recorded yet, by run folder. */
const claimed = new Set<string>();
const claimOf = (dir: string, name: string): string => `${dir}\0${name}`;
/** A name that no rollout has and no other replay will have: a revision may be replayed again, and twice at a time. */
export async function claimName(
  r: { readonly reader: { readonly index: Pick<OpenRun['reader']['index'], 'query'> } },
  dir: string,
  wanted: string,
): Promise<RolloutId> {
  for (let n = 1; n < 10_000; n++) {
    const name = n === 1 ? wanted : `${wanted}.${n}`,
      claim = claimOf(dir, name),
      there = await r.reader.index.query('SELECT 1 FROM rollouts WHERE id = ?', [name]);
    if (there.length > 0 || claimed.has(claim)) continue;
    claimed.add(claim);
    return id<RolloutId>(name);
  }
  throw new StudioError(
    'internal',
    `${wanted} has been replayed too often.`,
    'Edit it first: that makes a new revision.',
  );
}
