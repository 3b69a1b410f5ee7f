/** Vocabulary of import and export: foreign formats on one side, trajectories of a run on the other. */
import { type Action, type Size, type Step, type StepTimings, type VerifierReport } from '../domain/index.js';
import { isObject } from '../foreign/json.js';
import { Unusable } from '../foreign/unusable.js';
import { MOST_PIXELS, MOST_SIDE } from '../files/png.js';
import type { StepExtra } from '../data/events.js';
import type { CoordinateMode } from '../policy/actions/coordinates.js';

export const importFormats = ['osworld', 'agentnet', 'dart', 'ui-tars', 'traj'] as const;
export type ImportFormat = (typeof importFormats)[number];
export const coordinateModes = [
  'qwen25',
  'relative1000',
  'relative999',
  'relative1',
  'absolute',
] as const satisfies readonly CoordinateMode[];
export type { CoordinateMode };
export const exportFormats = ['osworld', 'agentnet', 'dart', 'openai', 'traj'] as const;
export type ExportFormat = (typeof exportFormats)[number];

/** Something that keeps one trajectory, or one file, from being used. Others go on. */
export interface Problem {
  /** File, with the line where there is one. */
  readonly where: string;
  readonly what: string;
  readonly remedy?: string;
}

/**
 * The error to throw on in place of `e`: an Unusable in other words, or with the place it lacks. Anything else stays as
 * it is.
 */
export function reworded(
  e: unknown,
  o: { readonly words?: (what: string) => string; readonly where?: string },
): unknown {
  if (!(e instanceof Unusable)) return e;
  return new Unusable(o.words?.(e.message) ?? e.message, { where: e.where ?? o.where, remedy: e.remedy });
}
export const problemOf = (e: Unusable, where: string): Problem => ({
  where: e.where ?? where,
  what: e.message.length > 400 ? `${e.message.slice(0, 400)}…` : e.message,
  remedy: e.remedy,
});

/**
 * The place of a screenshot's bytes. `file` is a real path that was checked to be inside the import folder; `slice`:
 * base64 text at these bytes of it.
 */
export interface Picture {
  readonly file: string;
  /** Name for people. */
  readonly name: string;
  readonly slice?: { readonly offset: number; readonly length: number };
  /** A small one, as base64 text. */
  readonly inline?: string;
  /** Hash that its pixels must have, where the source says. */
  readonly hash?: string;
}

export interface DraftStep {
  readonly frame: Picture;
  readonly size: Size;
  readonly thought?: string;
  readonly actions: readonly Action[];
  readonly origin: Step['origin'];
  /** When it was over, where the source says so. */
  readonly at?: number;
  /** How long its parts took, likewise. */
  readonly timings?: StepTimings;
  /** The sampled tokens of a remote model, where the format holds them. */
  readonly sampled?: Pick<Step, 'tokens' | 'prompt' | 'rejected'>;
  /** Labels of its tokens, for people. */
  readonly words?: Pick<StepExtra, 'labels' | 'packed'>;
}

/** A foreign trajectory, understood in full but with its pictures still where they are. */
export interface Draft {
  readonly format: ImportFormat;
  readonly where: string;
  /** Fingerprint of everything but the pictures: tells a source that changed from one that was imported already. */
  readonly fingerprint: string;
  readonly task: string;
  readonly family: string;
  readonly instruction: string;
  readonly steps: readonly DraftStep[];
  readonly outcome: { readonly reward: number; readonly truncated: boolean; readonly report?: VerifierReport };
  /** An episode of an evaluation: it is no training data, and stays out of the experience pool. */
  readonly measured?: true;
  /** The screen after the last action, when the trajectory does not end by itself. */
  readonly last?: Picture;
  readonly cap: number;
  readonly startedAt: number;
  readonly endedAt: number;
  /** What a reader had to leave out, in words. */
  readonly notes: readonly string[];
}
export type Found = { readonly draft: Draft } | { readonly problem: Problem };

export interface ReadOptions {
  /** Folder of OSWorld task files (`evaluation_examples`), for instructions that a results folder lacks. */
  readonly tasks?: string;
  /** Verdict of trajectories whose format has none (UI-TARS recordings). */
  readonly verdict?: 'success' | 'failure';
  /** Coordinates of UI-TARS text, when the file does not tell. */
  readonly coordinates?: CoordinateMode;
}

/** Bounds on what a file may make us hold. A real trajectory stays far below each of them. */
export const limits = {
  /** Bytes of one JSON line, and of a JSON file once its long strings are set aside. */
  line: 4 << 20,
  json: 4 << 20,
  /** Bytes of a file that is read piece by piece: a data set in one file, or a recording with its pictures. */
  file: 2 ** 36,
  /** Bytes of one picture file; as base64 a third more. */
  picture: 48 << 20,
  /** Pixels of one screen, and its longer side. */
  pixels: MOST_PIXELS,
  side: MOST_SIDE,
  steps: 5000,
  actions: 200,
  text: 200_000,
  id: 300,
  instruction: 20_000,
  /** Characters of a model's answer: its grammar is looked for from every place that may begin it. */
  answer: 20_000,
  /** Entries of the import folder, and how deep they lie. */
  entries: 2_000_000,
  depth: 12,
} as const;

export { isObject, Unusable };

/** A text field; absent, null and empty are undefined. Throws when it is something else or too long. */
export function textField(o: Record<string, unknown>, key: string): string | undefined {
  const v = o[key];
  if (v === undefined || v === null || v === '') return undefined;
  if (isObject(v) && '$slice' in v) throw new Unusable(`${key} is too long a text`);
  if (typeof v !== 'string') throw new Unusable(`${key} is not a text`);
  if (v.length > limits.text)
    throw new Unusable(`${key} is a text of ${v.length} characters; at most ${limits.text} are read`);
  return v;
}
