import { z } from 'zod';
import { PROVIDER_CHOICES } from '../domain/index.js';
import { candidates, rankForReview } from '../annotations/queue.js';
import * as m from '../protocol/methods.js';
import type { ReviewQueue } from '../protocol/types.js';
import { rowsOf } from '../queries/rows.js';
import { opsSchema, Annotator } from './annotator.js';
import { fields, schemas as shared, type Handlers } from './params.js';
import { replayRevision } from './replays.js';
import type { Studio } from './studio.js';

const { run, text } = fields,
  { trajectory } = shared;
const schemas = {
  edit: z.strictObject({ run, rollout: text, base: z.int().min(0), ops: opsSchema }),
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

/** annotation/* and review/*: revisions of finished trajectories, replays, the review queue. */
export function annotationHandlers(h: Handlers, s: Studio): Annotator {
  const annotator = new Annotator(s);
  h.on(m.getAnnotations, trajectory, (p) => annotator.view(p.run, p.rollout));
  h.on(m.editAnnotations, schemas.edit, (p) => annotator.edit(p.run, p.rollout, p.base, p.ops));
  h.on(m.undoAnnotation, trajectory, (p) => annotator.undo(p.run, p.rollout));
  h.on(m.redoAnnotation, trajectory, (p) => annotator.redo(p.run, p.rollout));
  h.on(m.replayTrajectory, schemas.replay, (p, c) =>
    s.job(
      `A trajectory of ${p.run} is being replayed.`,
      c.signal,
      (signal) =>
        replayRevision(s, annotator, p, {
          signal,
          onProgress: (x) => {
            c.notify(m.replayProgress.method, { run: p.run, rollout: p.rollout, ...x });
          },
        }),
      { exclusive: true },
    ),
  );
  h.on(m.reviewQueue, schemas.queue, (p) => reviewQueue(s, p));
  return annotator;
}

function reviewQueue(s: Studio, p: z.infer<typeof schemas.queue>): Promise<ReviewQueue> {
  return s.read(p.run, async (r) => {
    const marks = await s.annotations.marks(p.run),
      all = await candidates(r.reader, marks, p.family),
      items = await rankForReview(all, (f) => r.facts.families.get(f)?.infeasible ?? false, {
        limit: p.limit ?? QUEUE,
        reviewed: p.includeReviewed ?? false,
      }),
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
  });
}
