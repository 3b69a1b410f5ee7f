import { createHash } from 'node:crypto';
import { z } from 'zod';
import { actionSchemaOf } from '../../annotations/actionSchema.js';
import {
  type Action,
  type Size,
  type FrameLink,
  type Step,
  type StepView,
  parseTrajectory,
  parseTrajectoryStep,
  placesOf,
  withoutPrompts,
} from '../../domain/index.js';
import { heldOutTryPrefix } from '../../domain/probeNames.js';
import { packAlternatives } from '../../data/alternatives.js';
import { lines } from '../folder.js';
import { readRecord, readablePrompts, type StepRecord } from '../stepRecord.js';
import { Unusable, limits } from '../types.js';
import type { DraftStep, Found, Picture } from '../types.js';
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
    .array(
      z.object({
        what: words,
        detail: words.optional(),
        expected: words,
        found: words,
        score: z.number(),
        judge: z
          .object({ name: words, version: words, ms: z.number().min(0).max(1e9), files: z.array(words).max(1000) })
          .optional(),
      }),
    )
    .max(1000),
});

const ms = z.number().min(0).max(1e9),
  timingsSchema = z.object({ observe: ms, decide: ms, queue: ms, perform: ms, settle: ms });

/**
 * Our own `.traj.jsonl`, a line at a time. What a remote model sampled comes along: token ids, log-probs, prompts,
 * rejected answers. Choices of the embedded policy and policy versions are another run's and are left behind: to this
 * run the trajectory is an import like any other. Every line must be usable, and every frame must be there; a record
 * that cannot be used is left out, and noted.
 */
export async function* readTraj(c: ReadContext, u: Unit): AsyncGenerator<Found, void, undefined> {
  yield* one(c.folder.name(u.path), () => read(c, u));
}

async function read(c: ReadContext, u: Unit): Promise<Found> {
  const where = c.folder.name(u.path),
    { view, steps: views, fingerprint, records } = await viewOf(u.path, where),
    { row, report } = view,
    reward = rewardOfRow(row);
  const picture = async (f: FrameLink): Promise<Picture> => {
    const file = await c.folder.file(u.dir, `${view.framesDir}/${f.hash.slice(0, 2)}/${f.hash}.png`);
    return { ...pictureAt(c.folder, file), hash: f.hash };
  };
  const steps = new Steps(),
    sampled = sampledOf(views, records);
  for (const [i, s] of views.entries()) {
    if (s.index !== i) throw new Unusable(`step ${i} is missing`);
    const frame = await picture(s.frame);
    steps.add({
      frame,
      size: size(s.frame),
      actions: actionsOf(s.actions, s.frame, i),
      origin: s.origin === 'human' || s.origin === 'oracle' ? s.origin : 'policy',
      thought: typeof s.thought === 'string' ? s.thought.slice(0, limits.text) : undefined,
      at: moment(s.at),
      timings: timingsSchema.safeParse(s.timings).data,
      sampled: sampled.steps[i]?.record,
      words: sampled.steps[i]?.record?.tokens && wordsOf(s),
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
      notes: [...steps.notes, ...sampled.notes],
      ...(row.provenance === 'probe' && !row.rollout.startsWith(heldOutTryPrefix) ? { measured: true as const } : {}),
      outcome: { reward, truncated: row.truncated === true, report: reportSchema.safeParse(report).data },
      last: !steps.ended && after ? await picture(after) : undefined,
      cap: Number.isInteger(row.cap) && row.cap >= 0 ? row.cap : steps.list.length,
      startedAt: time(row.startedAt),
      endedAt: time(row.endedAt),
    },
  };
}

/** Empty ones among them, of which a small file may hold millions. */
const mostLines = 4 * limits.steps;
type View = Extract<ReturnType<typeof parseTrajectory>, { ok: true }>['trajectory'];

/** The file's head and its steps in order. One line is in memory at a time. */
async function viewOf(
  path: string,
  where: string,
): Promise<{
  readonly view: View;
  readonly steps: readonly StepView[];
  /** Values of the lines' `record`, by the index of their step; not checked. */
  readonly records: ReadonlyMap<number, unknown>;
  readonly fingerprint: string;
}> {
  const hash = createHash('sha256'),
    steps: StepView[] = [],
    records = new Map<number, unknown>();
  let head: View | undefined;
  for await (const { line, text } of lines(path)) {
    const at = `${where}:${line}`;
    if (text === undefined) throw new Unusable(`the line is longer than ${limits.line >> 20} MB`, { where: at });
    if (line > mostLines) throw new Unusable(`has more than ${mostLines} lines`, { where: at });
    if (text.trim() === '') continue;
    hash.update(text);
    if (head === undefined) {
      head = headOf(text, at);
      continue;
    }
    const read = parseTrajectoryStep(text);
    if (!read.ok) throw new Unusable(read.why, { where: at });
    if (steps.length >= limits.steps) throw new Unusable(`has more than ${limits.steps} steps`);
    const { step, record } = read;
    if (record !== undefined) records.set(step.index, record);
    // Without a record nothing reads the tokens.
    steps.push(record === undefined ? { ...step, tokens: [] } : step);
  }
  if (!head) throw new Unusable('is empty');
  steps.sort((a, b) => a.index - b.index);
  return { view: head, steps, records, fingerprint: hash.digest('hex').slice(0, 12) };
}
function headOf(text: string, where: string): View {
  const r = parseTrajectory(text);
  if (!r.ok) throw new Unusable(r.why, { where });
  return r.trajectory;
}

/** The sampled tokens of each step, as far as they can be used; notes say which cannot. */
function sampledOf(
  views: readonly StepView[],
  records: ReadonlyMap<number, unknown>,
): { readonly steps: readonly { readonly record?: StepRecord | undefined }[]; readonly notes: readonly string[] } {
  const notes: string[] = [];
  let gap = false;
  const read = views.map((v) => {
    const value = records.get(v.index),
      r = value === undefined ? undefined : readRecord(value);
    if (r && 'why' in r) {
      notes.push(`the record of step ${v.index} is left out: ${r.why}`);
      gap = true;
      return {};
    }
    // A prompt is told by those before it.
    return { record: gap && r ? withoutPrompts(r) : r };
  });
  const { steps, lost } = readablePrompts(
    read.map((x) => x.record ?? {}),
    (r, index): Step => ({ ...emptyStep, ...r, index }),
  );
  if (lost > 0) notes.push('prompts are left out where they do not fit those before them');
  return { steps: steps.map((record, i) => (read[i]!.record ? { record } : {})), notes };
}
const emptyStep: Omit<Step, 'index'> = {
  frame: { hash: '', width: 0, height: 0 },
  actions: [],
  origin: 'policy',
  settled: true,
  timings: { observe: 0, decide: 0, queue: 0, perform: 0, settle: 0 },
};

/** Labels of the tokens, and the alternatives to them. */
function wordsOf(s: StepView): NonNullable<DraftStep['words']> {
  const label = (x: string): string => x.slice(0, mostLabel);
  return {
    labels: s.tokens?.map((x) => label(x.label)),
    packed: s.tokens && packAlternatives(s.tokens.map((x) => alternativesSchema.parse(x.alternatives))),
  };
}
const mostLabel = 300;
const alternativesSchema = z
  .array(z.object({ label: z.string().transform((x) => x.slice(0, mostLabel)), probability: z.number().min(0).max(1) }))
  .max(32)
  .catch([]);

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
