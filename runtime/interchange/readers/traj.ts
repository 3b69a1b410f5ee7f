import { createHash } from 'node:crypto';
import { z } from 'zod';
import { actionSchemaOf } from '../../annotations/actionSchema.js';
import {
  type Action,
  type Size,
  type FrameLink,
  type StepView,
  parseTrajectory,
  placesOf,
} from '../../domain/index.js';
import { lines } from '../folder.js';
import { Unusable, limits } from '../types.js';
import type { Found, Picture } from '../types.js';
import { Steps, moment, one, pictureAt } from './read.js';
import type { ReadContext, Unit } from './read.js';

const side = z.number().min(0).max(limits.side),
  words = z.string().max(limits.text);
const actionSchema = actionSchemaOf({
  strict: false,
  place: z.object({ x: side, y: side }),
  text: limits.text,
  emptyText: true,
  keys: 8,
});
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
  const where = c.folder.name(u.path),
    { view, steps: views, fingerprint } = await viewOf(u.path, where),
    { row, report } = view,
    reward = rewardOfRow(row);
  const picture = async (f: FrameLink): Promise<Picture> => {
    const file = await c.folder.file(u.dir, `${view.framesDir}/${f.hash.slice(0, 2)}/${f.hash}.png`);
    return { ...pictureAt(c.folder, file), hash: f.hash };
  };
  const steps = new Steps();
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
  const after = views.at(-1)?.after;
  return {
    draft: {
      format: 'traj',
      where,
      fingerprint,
      task: row.task,
      family: row.family,
      instruction: row.instruction,
      steps: steps.list,
      notes: [],
      outcome: { reward, truncated: row.truncated === true, report: reportSchema.safeParse(report).data },
      last: !steps.ended && after ? await picture(after) : undefined,
      cap: Number.isInteger(row.cap) && row.cap >= 0 ? row.cap : steps.list.length,
      startedAt: time(row.startedAt),
      endedAt: time(row.endedAt),
    },
  };
}

type View = Extract<ReturnType<typeof parseTrajectory>, { ok: true }>['trajectory'];

/** The file's head and its steps in order. One line is in memory at a time. */
async function viewOf(
  path: string,
  where: string,
): Promise<{ readonly view: View; readonly steps: readonly StepView[]; readonly fingerprint: string }> {
  const hash = createHash('sha256'),
    steps: StepView[] = [];
  let head: { readonly text: string; readonly view: View } | undefined;
  for await (const { line, text } of lines(path)) {
    const at = `${where}:${line}`;
    if (text === undefined) throw new Unusable(`the line is longer than ${limits.line >> 20} MB`, { where: at });
    if (text.trim() === '') continue;
    hash.update(text);
    if (head === undefined) {
      head = { text, view: parsed(text, at) };
      continue;
    }
    const step = parsed(`${head.text}\n${text}`, at).steps[0];
    if (steps.length >= limits.steps) throw new Unusable(`has more than ${limits.steps} steps`);
    if (step) steps.push({ ...step, tokens: [] });
  }
  if (!head) throw new Unusable('is empty');
  steps.sort((a, b) => a.index - b.index);
  return { view: head.view, steps, fingerprint: hash.digest('hex').slice(0, 12) };
}
function parsed(text: string, where: string): View {
  const r = parseTrajectory(text),
    why = r.ok ? r.skipped[0]?.why : r.why;
  if (!r.ok || why !== undefined) throw new Unusable(why ?? 'cannot be read', { where });
  return r.trajectory;
}

/** Throws Unusable for a trajectory without an outcome, or with a score that contradicts it. */
function rewardOfRow(row: View['row']): number {
  const { outcome, reward: score } = row;
  if (outcome !== 'success' && outcome !== 'failure')
    throw new Unusable(
      outcome === 'error' ? 'ended in an error: it has no outcome' : 'was still running: it has no outcome',
    );
  const reward = typeof score === 'number' && score >= 0 && score <= 1 ? score : outcome === 'success' ? 1 : 0;
  if (reward >= 1 !== (outcome === 'success'))
    throw new Unusable(`its outcome '${outcome}' and its score ${reward} disagree`);
  return reward;
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
    for (const p of placesOf(a))
      if (p.x >= screen.width || p.y >= screen.height)
        throw new Unusable(`step ${step}: ${p.x},${p.y} lies outside the ${screen.width}x${screen.height} screen`);
  }
  return r.data;
}
const time = (v: number | undefined): number => (typeof v === 'number' && Number.isFinite(v) && v >= 0 ? v : 0);
