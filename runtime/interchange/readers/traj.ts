import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type Action, type Size, type FrameLink, type StepView, parseTrajectory } from '../../domain/index.js';
import { lines } from '../folder.js';
import { Unusable, limits } from '../types.js';
import type { Found, Picture } from '../types.js';
import { Steps, moment, one, pictureAt } from './read.js';
import type { ReadContext, Unit } from './read.js';

const point = z.object({ x: z.number().min(0).max(limits.side), y: z.number().min(0).max(limits.side) }),
  modifiers = z
    .array(z.enum(['ctrl', 'shift', 'alt', 'super']))
    .max(4)
    .optional(),
  words = z.string().max(limits.text);
const actionSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('click'), at: point, modifiers }),
  z.object({ type: z.literal('left_double'), at: point, modifiers }),
  z.object({ type: z.literal('right_single'), at: point, modifiers }),
  z.object({ type: z.literal('drag'), from: point, to: point, modifiers }),
  z.object({
    type: z.literal('scroll'),
    at: point,
    direction: z.enum(['up', 'down', 'left', 'right']),
    amount: z.number().int().min(1).max(20).optional(),
  }),
  z.object({ type: z.literal('hotkey'), keys: z.array(z.string().min(1).max(24)).min(1).max(8) }),
  z.object({ type: z.literal('type'), text: words }),
  z.object({ type: z.literal('wait'), ms: z.number().min(0).max(60_000).optional() }),
  z.object({ type: z.literal('finished'), answer: words.optional() }),
  z.object({ type: z.literal('fail'), reason: words.optional() }),
]);
const reportSchema = z.object({
  checks: z
    .array(z.object({ what: words, detail: words.optional(), expected: words, found: words, score: z.number() }))
    .max(1000),
});

const ms = z.number().min(0).max(1e9),
  timingsSchema = z.object({ observe: ms, decide: ms, queue: ms, perform: ms, settle: ms });

/**
 * Our own `.traj.jsonl`, a line at a time. Token log-probs and policy versions are another run's and are left behind:
 * to this run the trajectory is an import like any other. Every line must be usable, and every frame must be there.
 */
export async function* readTraj(c: ReadContext, u: Unit): AsyncGenerator<Found, void, undefined> {
  yield* one(c.folder.name(u.path), () => read(c, u));
}

async function read(c: ReadContext, u: Unit): Promise<Found> {
  const { folder } = c,
    where = folder.name(u.path),
    hash = createHash('sha256'),
    views: StepView[] = [];
  let head: string | undefined, view: ReturnType<typeof parsed> | undefined;
  for await (const { line, text } of lines(u.path)) {
    if (text === undefined)
      throw new Unusable(`the line is longer than ${limits.line >> 20} MB`, { where: `${where}:${line}` });
    if (text.trim() === '') continue;
    hash.update(text);
    if (head === undefined) {
      head = text;
      view = parsed(text, line);
      continue;
    }
    const step = parsed(`${head}\n${text}`, line).steps[0];
    if (views.length >= limits.steps) throw new Unusable(`has more than ${limits.steps} steps`);
    if (step) views.push({ ...step, tokens: [] });
  }
  if (!view) throw new Unusable('is empty');
  const { row, report, framesDir } = view;
  if (row.outcome !== 'success' && row.outcome !== 'failure')
    throw new Unusable(
      row.outcome === 'error' ? 'ended in an error: it has no outcome' : 'was still running: it has no outcome',
    );
  const reward =
    typeof row.reward === 'number' && row.reward >= 0 && row.reward <= 1
      ? row.reward
      : row.outcome === 'success'
        ? 1
        : 0;
  if (reward >= 1 !== (row.outcome === 'success'))
    throw new Unusable(`its outcome '${row.outcome}' and its score ${reward} disagree`);
  const steps = new Steps();
  views.sort((a, b) => a.index - b.index);
  for (const [i, s] of views.entries()) {
    if (s.index !== i) throw new Unusable(`step ${i} is missing`);
    const frame = await picture(s.frame);
    steps.add({
      frame,
      size: size(s.frame),
      actions: actionsOf(s.actions, s.frame, i),
      origin: s.origin === 'human' || s.origin === 'oracle' ? s.origin : 'policy',
      thought: s.thought?.slice(0, limits.text),
      at: moment(s.at),
      timings: timingsSchema.safeParse(s.timings).data,
    });
  }
  if (steps.list.length === 0) throw new Unusable('has no steps');
  const after = views.at(-1)?.after,
    checked = reportSchema.safeParse(report);
  return {
    draft: {
      format: 'traj',
      where,
      fingerprint: hash.digest('hex').slice(0, 12),
      task: row.task,
      family: row.family,
      instruction: row.instruction,
      steps: steps.list,
      notes: [],
      outcome: { reward, truncated: row.truncated === true, ...(checked.success ? { report: checked.data } : {}) },
      ...(!steps.ended && after ? { last: await picture(after) } : {}),
      cap: Number.isInteger(row.cap) && row.cap >= 0 ? row.cap : steps.list.length,
      startedAt: time(row.startedAt),
      endedAt: time(row.endedAt),
    },
  };

  function parsed(text: string, line: number): Extract<ReturnType<typeof parseTrajectory>, { ok: true }>['trajectory'] {
    const r = parseTrajectory(text),
      why = r.ok ? r.skipped[0]?.why : r.why;
    if (!r.ok || why !== undefined) throw new Unusable(why ?? 'cannot be read', { where: `${where}:${line}` });
    return r.trajectory;
  }
  async function picture(f: FrameLink): Promise<Picture> {
    const file = await folder.file(u.dir, `${framesDir}/${f.hash.slice(0, 2)}/${f.hash}.png`);
    return { ...pictureAt(folder, file), hash: f.hash };
  }
}

function size(f: FrameLink): Size {
  if (
    !Number.isInteger(f.width) ||
    !Number.isInteger(f.height) ||
    f.width < 1 ||
    f.height < 1 ||
    f.width * f.height > limits.pixels
  )
    throw new Unusable('a frame has no usable size');
  return { width: f.width, height: f.height };
}
function actionsOf(v: unknown, screen: Size, step: number): Action[] {
  const r = z.array(actionSchema).max(limits.actions).safeParse(v);
  if (!r.success)
    throw new Unusable(
      `step ${step}: ${r.error.issues[0]?.path.join('.') ?? ''}: no action we have (${r.error.issues[0]?.message ?? ''})`,
    );
  for (const a of r.data) {
    for (const p of 'at' in a ? [a.at] : a.type === 'drag' ? [a.from, a.to] : [])
      if (p.x >= screen.width || p.y >= screen.height)
        throw new Unusable(`step ${step}: ${p.x},${p.y} lies outside the ${screen.width}x${screen.height} screen`);
  }
  return r.data;
}
const time = (v: number | undefined): number => (typeof v === 'number' && Number.isFinite(v) && v >= 0 ? v : 0);
