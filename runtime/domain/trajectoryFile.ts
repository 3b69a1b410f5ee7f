/**
 * `.traj.jsonl`: one trajectory in one text file, for the custom editor, for sharing and for tests. The first line is
 * the head, followed by one line per step. Frames are PNG files under `framesDir`, relative to the file. Opens without
 * a daemon; parsing never trusts the text.
 */
import { argumentValue, argumentsOf, type Action, type ActionType } from './action.js';
import { SCROLL_DIRECTIONS, type ActionArgument } from './actionArguments.js';
import { isObject, jsonOrNothing } from '../foreign/json.js';
import type { StepView, TrajectoryView } from './trajectoryView.js';

export const trajectoryFileFormat = 'dart-studio/trajectory';
interface Head extends Omit<TrajectoryView, 'steps' | 'live' | 'seq'> {
  readonly format: typeof trajectoryFileFormat;
  readonly formatVersion: 1;
}

/**
 * `records`: of steps by their index, what a trainer needs beside the view, as plain JSON; it stands under `record` in
 * their lines. A step with a token of unknown log-prob has its tokens under `sampled`: readers of version 0.1 would
 * refuse it, and show it without tokens so.
 */
export function serializeTrajectory(
  t: TrajectoryView,
  o: { readonly framesDir?: string; readonly records?: ReadonlyMap<number, object> } = {},
): string {
  const { steps, live: _live, seq: _seq, ...rest } = t;
  const head: Head = { format: trajectoryFileFormat, formatVersion: 1, ...rest, framesDir: o.framesDir ?? 'frames' };
  const lines = steps.map(({ tokens, ...step }) => ({
    ...step,
    [tokens?.every((x) => x.logprob !== undefined) ? 'tokens' : 'sampled']: tokens,
    record: o.records?.get(step.index),
  }));
  return [head, ...lines].map((l) => JSON.stringify(l)).join('\n') + '\n';
}

export type ParsedTrajectory =
  | {
      readonly ok: true;
      readonly trajectory: TrajectoryView;
      /** Lines that could not be used, 1-based. */
      readonly skipped: readonly {
        readonly line: number;
        readonly why: string;
      }[];
      /** Values of the lines' `record`, by the index of their step; not checked. */
      readonly records: ReadonlyMap<number, unknown>;
    }
  | { readonly ok: false; readonly line: number; readonly why: string };

/** Parses one line behind the head. `record`: the line's value of that name; not checked. */
export function parseTrajectoryStep(
  line: string,
):
  | { readonly ok: true; readonly step: StepView; readonly record: unknown }
  | { readonly ok: false; readonly why: string } {
  const { record, step } = stepLine(json(line)),
    why = stepProblem(step);
  return why === undefined ? { ok: true, step: step as unknown as StepView, record } : { ok: false, why };
}

/** Bad steps are skipped and listed; a bad head makes the file unusable. A torn last line is skipped. */
export function parseTrajectory(text: string): ParsedTrajectory {
  const lines = text.split('\n');
  const first = json(lines[0] ?? '');
  if (!isObject(first) || first['format'] !== trajectoryFileFormat)
    return { ok: false, line: 1, why: `the first line is not the head of a ${trajectoryFileFormat} file` };
  const version = first['formatVersion'];
  if (version !== 1)
    return {
      ok: false,
      line: 1,
      why: `format version ${typeof version === 'number' ? version : 'that is no number'} is newer than this extension`,
    };
  const row = first['row'];
  if (
    !isObject(row) ||
    typeof row['rollout'] !== 'string' ||
    typeof row['instruction'] !== 'string' ||
    typeof row['task'] !== 'string' ||
    typeof row['family'] !== 'string' ||
    typeof row['outcome'] !== 'string'
  )
    return { ok: false, line: 1, why: 'the head lacks rollout, task, family, instruction or outcome' };
  const framesDir = first['framesDir'];
  if (typeof framesDir !== 'string' || !safeRelative(framesDir))
    return { ok: false, line: 1, why: 'framesDir must be a folder below the file' };
  const steps: StepView[] = [],
    skipped: { line: number; why: string }[] = [],
    records = new Map<number, unknown>();
  for (let i = 1; i < lines.length; i++) {
    if (lines[i]!.trim() === '') continue;
    const read = parseTrajectoryStep(lines[i]!);
    if (!read.ok) {
      skipped.push({ line: i + 1, why: read.why });
      continue;
    }
    steps.push(read.step);
    if (read.record !== undefined) records.set(read.step.index, read.record);
  }
  const { format: _f, formatVersion: _v, ...head } = first;
  return {
    ok: true,
    trajectory: {
      ...(head as unknown as Omit<TrajectoryView, 'steps' | 'live'>),
      steps: steps.sort((a, b) => a.index - b.index),
      live: false,
    },
    skipped,
    records,
  };
}

function stepLine(line: unknown): { readonly step: unknown; readonly record?: unknown } {
  if (!isObject(line)) return { step: line };
  const { record, sampled, ...step } = line;
  return { step: sampled === undefined ? step : { ...step, tokens: sampled }, record };
}

/** Undefined where it is none, or is nested or long beyond what a step can be. */
const json = (s: string): unknown => jsonOrNothing(s, { depth: 64, values: 1 << 19 });
/** A path that stays below its folder. */
export const safeRelative = (p: string): boolean => !/^([/\\]|[a-z]:)/i.test(p) && !p.split(/[/\\]/).includes('..');
const isHash = (x: unknown): boolean => typeof x === 'string' && /^[0-9a-f]{64}$/.test(x);
const isFrame = (x: unknown): boolean =>
  isObject(x) && isHash(x['hash']) && typeof x['width'] === 'number' && typeof x['height'] === 'number';

function stepProblem(s: unknown): string | undefined {
  if (!isObject(s)) return 'not a JSON object';
  const { index } = s;
  if (typeof index !== 'number' || !Number.isInteger(index) || index < 0) return 'index is not a number';
  if (!isFrame(s['frame'])) return 'frame is not a frame link';
  if (s['after'] !== undefined && !isFrame(s['after'])) return 'after is not a frame link';
  const { actions, timings } = s;
  if (!Array.isArray(actions) || !actions.every(isAction)) return 'actions is not a list of actions';
  if (!isObject(timings)) return 'timings are missing';
  if (!Object.values(timings).every(isNumber)) return 'timings are not numbers';
  if (s['progress'] !== undefined && !isProgress(s['progress'])) return 'progress is no share of checks';
  if (s['tokens'] !== undefined && !areTokens(s['tokens'])) return 'tokens is not a list of tokens';
  if (s['rejected'] !== undefined && !(Array.isArray(s['rejected']) && s['rejected'].every(isRejected)))
    return 'rejected is not a list of answers';
  if (s['prompt'] !== undefined && !isPrompt(s['prompt'])) return 'prompt is not a prompt';
  return undefined;
}
/** An action of a type that a newer version wrote is shown by its type alone. */
const isAction = (a: unknown): boolean =>
  isObject(a) &&
  typeof a['type'] === 'string' &&
  argumentsOf(a['type'] as ActionType).every(([name, { kind, optional }]) => {
    const value = argumentValue(a as unknown as Action, name);
    return value === undefined ? optional === true : isArgument[kind](value);
  });
const areStrings = (x: unknown): boolean => Array.isArray(x) && x.every((k) => typeof k === 'string');
const isArgument: Readonly<Record<ActionArgument['kind'], (x: unknown) => boolean>> = {
  place: (x) => isObject(x) && isNumber(x['x']) && isNumber(x['y']),
  modifiers: areStrings,
  keys: areStrings,
  direction: (x) => (SCROLL_DIRECTIONS as readonly unknown[]).includes(x),
  text: (x) => typeof x === 'string',
  number: (x) => isNumber(x),
};
const isNumber = (x: unknown): boolean => typeof x === 'number' && Number.isFinite(x);
const isProgress = (x: unknown): boolean =>
  isObject(x) && typeof x['held'] === 'number' && x['held'] >= 0 && x['held'] <= 1 && isNumber(x['ms']);
const isToken = (t: unknown): boolean =>
  isObject(t) &&
  typeof t['label'] === 'string' &&
  (t['logprob'] === undefined || isNumber(t['logprob'])) &&
  isNumber(t['entropy']);
const areTokens = (x: unknown): boolean => Array.isArray(x) && x.every(isToken);
const isRejected = (x: unknown): boolean =>
  isObject(x) &&
  typeof x['text'] === 'string' &&
  typeof x['reason'] === 'string' &&
  (x['tokens'] === undefined || areTokens(x['tokens']));
const isPrompt = (x: unknown): boolean =>
  x === 'damaged' ||
  x === 'pending' ||
  (isObject(x) && isNumber(x['tokens']) && Array.isArray(x['images']) && x['images'].every(isFrame));
