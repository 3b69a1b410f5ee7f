import {
  GLYPH_SPEC,
  choiceOf,
  oddFinish,
  sampledRemotely,
  gridOf,
  type ChoicePlaces,
  type FrameRef,
  type SampledSequence,
  type Size,
  type Step,
  type TokenTrace,
} from '../domain/index.js';
import { unpackAlternatives } from '../data/alternatives.js';
import { stepEntropy } from '../data/curation/highEntropy.js';
import type { StepExtra } from '../data/events.js';
import type { FrameLink, PromptView, RejectedView, StepView, TokenView } from '../protocol/types.js';

/** Reads what journals hold in the words of those who made it. The service gives it: queries know no policy or trainer. */
export interface Interpreter {
  /** Labels of a step's sampled choices, for journals that did not keep them; undefined when unknown. */
  choiceNames(step: Step, instruction: string): readonly string[] | undefined;
  /**
   * Advantage of each trajectory of a group, from its reward and its number of steps, trained or not; undefined where
   * every step has one of its own.
   */
  advantages(rewards: readonly number[], steps: readonly number[]): readonly number[] | undefined;
}

/** A recorded step and what is known beside it. */
export interface StepFacts {
  readonly step: Step;
  readonly at: number;
  readonly extra?: StepExtra | undefined;
  /** Names tokens of journals that did not keep their labels. */
  readonly instruction: string;
  readonly after?: FrameRef | undefined;
  readonly kept?: boolean | undefined;
  readonly advantage?: number | undefined;
  readonly weight?: number | undefined;
  /** Truncated importance weights of the step's tokens, where training kept them. */
  readonly tokenWeights?: Float32Array | undefined;
  /** The step's own answer, decoded; 'damaged' where its record cannot be read, absent where no other step is at hand. */
  readonly sequence?: SampledSequence | 'damaged' | undefined;
  readonly desktop?: string | undefined;
}

export const frameLink = (f: FrameRef): FrameLink => ({ hash: f.hash, width: f.width, height: f.height });

/** A step for people. Pure. */
export function stepView(f: StepFacts, interpreter: Pick<Interpreter, 'choiceNames'>): StepView {
  const { extra } = f,
    step = shownStep(f.step);
  return {
    index: step.index,
    at: step.at ?? f.at,
    frame: frameLink(step.frame),
    after: f.after && frameLink(f.after),
    thought: step.thought,
    actions: step.actions,
    origin: step.origin,
    declined: step.declined,
    settled: step.settled,
    tokens: step.tokens && tokenViews({ ...f, step }, step.tokens, interpreter),
    entropy: stepEntropy(step),
    entropyBound: step.tokens?.bound,
    prompt: step.prompt && (f.sequence ? promptView(f.sequence) : 'pending'),
    finish: oddFinish(step.tokens),
    rejected: rejectedViews(f),
    kept: f.kept,
    version: step.version,
    advantage: f.advantage,
    weight: Number.isFinite(f.weight) ? f.weight : undefined,
    progress: step.progress,
    timings: step.timings,
    replica: extra?.replica || undefined,
    desktop: extra?.desktop ?? f.desktop,
  };
}

/** Numbers that are not known are absent: JSON has no NaN. */
const known = (x: number | undefined): number | undefined => (Number.isFinite(x) ? x : undefined);

/** Images of a prompt that are listed: no history is as long. */
const MOST_IMAGES = 1024;
function promptView(s: SampledSequence | 'damaged'): PromptView | 'damaged' {
  if (s === 'damaged') return s;
  const shown = s.images.reduce((sum, i) => sum + i.tokens, 0);
  return {
    tokens: s.symbols.length - s.images.length + shown,
    images: s.images.slice(0, MOST_IMAGES).map((i) => frameLink(i.frame)),
  };
}

function rejectedViews({ step, extra }: StepFacts): RejectedView[] | undefined {
  return step.rejected?.map(({ text, reason, tokens, version }, i) => ({
    text,
    reason,
    version,
    tokens: tokens && plainTokens(tokens, extra?.rejectedLabels?.[i]),
    finish: oddFinish(tokens),
  }));
}
/** Undefined where nobody kept what the tokens are called: numbers without words say nothing to people. */
const plainTokens = (t: TokenTrace, labels: readonly string[] | undefined): TokenView[] | undefined =>
  isTrace(t) && labels?.length === t.logprobs.length
    ? labels
        .slice(0, MOST_TOKENS)
        .map((label, i) => ({ label, logprob: known(t.logprobs[i]), entropy: known(t.entropies[i]) ?? 0 }))
    : undefined;

/** Tokens of one answer that are shown: no model gives as many. Behind them a step is cut. */
export const MOST_TOKENS = 1 << 16;
/** Whether a record, which may be a stranger's, holds columns of the same length. */
function isTrace(t: TokenTrace | undefined): t is TokenTrace {
  const { logprobs, entropies, ids } = (t ?? {}) as { readonly [K in keyof TokenTrace]?: unknown };
  if (!(logprobs instanceof Float32Array && entropies instanceof Float32Array)) return false;
  if (entropies.length !== logprobs.length) return false;
  return ids === undefined || (ids instanceof Int32Array && ids.length === logprobs.length);
}

/** The step with tokens that can be shown. */
function shownStep(step: Step): Step {
  const { tokens: t, ...rest } = step;
  if (!isTrace(t)) return rest;
  if (t.logprobs.length <= MOST_TOKENS) return step;
  const cut = {
    logprobs: t.logprobs.subarray(0, MOST_TOKENS),
    entropies: t.entropies.subarray(0, MOST_TOKENS),
    ...(t.ids && { ids: t.ids.subarray(0, MOST_TOKENS) }),
  };
  return { ...rest, tokens: { ...t, ...cut } };
}

function tokenViews(f: StepFacts, t: TokenTrace, interpreter: Pick<Interpreter, 'choiceNames'>): TokenView[] {
  const { step, extra, instruction } = f,
    alternatives = extra?.packed ? unpackAlternatives(extra.packed, MOST_TOKENS) : extra?.alternatives,
    placesAt = new Map(extra?.places?.filter(arePlaces).map((x) => [x.token, x])),
    names = extra?.labels ?? (sampledRemotely(step) ? undefined : interpreter.choiceNames(step, instruction));
  return Array.from(t.logprobs, (p, i): TokenView => {
    const logprob = known(p),
      label = names?.[i] ?? nearest(alternatives?.[i], p) ?? `token ${i + 1}`,
      places = placesAt.get(i);
    const others: Alternative[] = places ? placeAlternatives(places, step.frame) : [...(alternatives?.[i] ?? [])];
    // The sampled choice may be less probable than all that were kept.
    if (others.length > 0 && logprob !== undefined && !others.some((a) => a.label === label))
      others.push({ label, probability: Math.exp(logprob), ...(places ? chosenPlace(step, i, places) : {}) });
    return {
      label,
      logprob,
      entropy: known(t.entropies[i]) ?? 0,
      weight: known(f.tokenWeights?.[i]),
      alternatives: others.length > 0 ? others : undefined,
    };
  });
}
type Alternative = NonNullable<TokenView['alternatives']>[number];

/** Cells of one choice that are drawn; a policy keeps a few. */
const MOST_CELLS = 1024;
const arePlaces = ({ grid, cells, probabilities }: { readonly [K in keyof ChoicePlaces]: unknown }): boolean =>
  Array.isArray(grid) && cells instanceof Int32Array && probabilities instanceof Float32Array;
const placeAlternatives = (p: ChoicePlaces, screen: Size): Alternative[] =>
  Array.from(p.cells.subarray(0, MOST_CELLS), (cell, k) => {
    const at = cellRect(p.grid, cell, screen);
    return { label: centre(p.grid, cell, screen), probability: p.probabilities[k] ?? 0, at };
  });

/** A cell in screen pixels, cut off at the screen's edges. `grid`: see ChoicePlaces. */
export function cellRect(
  grid: readonly number[],
  cell: number,
  screen: Size,
): { x: number; y: number; width: number; height: number } {
  const [vx, vy, vw, vh, side, cols] = grid as [number, number, number, number, number, number];
  const left = (cell % cols) * side - vx,
    top = Math.floor(cell / cols) * side - vy;
  const x = (v: number): number => Math.round((Math.min(Math.max(v, 0), vw) * screen.width) / vw),
    y = (v: number): number => Math.round((Math.min(Math.max(v, 0), vh) * screen.height) / vh);
  return { x: x(left), y: y(top), width: x(left + side) - x(left), height: y(top + side) - y(top) };
}
/** The point of a decision for this cell (policy/embedded/observation.ts, cellCentre). */
function centre(grid: readonly number[], cell: number, screen: Size): string {
  const [vx, vy, vw, vh, side, cols] = grid as [number, number, number, number, number, number];
  const at = (v: number, of: number, size: number): number =>
    Math.min(size - 1, Math.max(0, Math.floor((v * size) / of)));
  return `${at((cell % cols) * side + side / 2 - vx, vw, screen.width)},${at(Math.floor(cell / cols) * side + side / 2 - vy, vh, screen.height)}`;
}

function chosenPlace(step: Step, token: number, p: ChoicePlaces): Pick<Alternative, 'at'> {
  const id = step.tokens?.ids?.[token];
  if (id === undefined || gridOf(GLYPH_SPEC).cols !== p.grid[5]) return {};
  const { head, index } = choiceOf(GLYPH_SPEC, id);
  return head === 'cell' || head === 'cell2' ? { at: cellRect(p.grid, index, step.frame) } : {};
}

const nearest = (
  alternatives: readonly { label: string; probability: number }[] | undefined,
  logprob: number,
): string | undefined => alternatives?.find((a) => Math.abs(a.probability - Math.exp(logprob)) < 1e-3)?.label;
