/**
 * `.traj.jsonl`: one trajectory in one text file, for the custom editor, for sharing and for tests. The first line is
 * the head, followed by one line per step. Frames are PNG files under `framesDir`, relative to the file. Opens without
 * a daemon; parsing never trusts the text.
 */
import type { StepView, TrajectoryView } from './trajectoryView.js';

export const trajectoryFileFormat = 'dart-studio/trajectory';
interface Head extends Omit<TrajectoryView, 'steps' | 'live' | 'seq'> {
  readonly format: typeof trajectoryFileFormat;
  readonly formatVersion: 1;
}

export function serializeTrajectory(t: TrajectoryView, framesDir = 'frames'): string {
  const { steps, live: _live, seq: _seq, ...rest } = t;
  const head: Head = { format: trajectoryFileFormat, formatVersion: 1, ...rest, framesDir };
  return [head, ...steps].map((l) => JSON.stringify(l)).join('\n') + '\n';
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
    }
  | { readonly ok: false; readonly line: number; readonly why: string };

/** Bad steps are skipped and listed; a bad head makes the file unusable. A torn last line is skipped. */
export function parseTrajectory(text: string): ParsedTrajectory {
  const lines = text.split('\n');
  const first = json(lines[0] ?? '');
  if (!isObject(first) || first['format'] !== trajectoryFileFormat)
    return { ok: false, line: 1, why: `the first line is not the head of a ${trajectoryFileFormat} file` };
  if (first['formatVersion'] !== 1)
    return { ok: false, line: 1, why: `format version ${String(first['formatVersion'])} is newer than this extension` };
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
    skipped: { line: number; why: string }[] = [];
  for (let i = 1; i < lines.length; i++) {
    if (lines[i]!.trim() === '') continue;
    const s = json(lines[i]!),
      why = stepProblem(s);
    if (why) skipped.push({ line: i + 1, why });
    else steps.push(s as unknown as StepView);
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
  };
}

/** A plain JSON object. */
export const isObject = (x: unknown): x is Record<string, unknown> =>
  typeof x === 'object' && x !== null && !Array.isArray(x);
const json = (s: string): unknown => {
  try {
    return JSON.parse(s);
  } catch {
    return undefined;
  }
};
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
  if (!Array.isArray(s['actions']) || !s['actions'].every((a) => isObject(a) && typeof a['type'] === 'string'))
    return 'actions is not a list of actions';
  if (!isObject(s['timings'])) return 'timings are missing';
  if (
    s['tokens'] !== undefined &&
    !(
      Array.isArray(s['tokens']) &&
      s['tokens'].every(
        (t) =>
          isObject(t) &&
          typeof t['label'] === 'string' &&
          typeof t['logprob'] === 'number' &&
          typeof t['entropy'] === 'number',
      )
    )
  )
    return 'tokens is not a list of tokens';
  return undefined;
}
