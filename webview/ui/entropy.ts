/** Marks of the steps at which the policy hesitated, by entropy; and the timeline's geometry. Pure. */
import type { StepView } from '../../runtime/protocol/types.js';
import { t } from './words.js';

export interface StepMark {
  readonly entropy?: number;
  /** High entropy: one of the fifth of the steps with the highest, and not below the group's threshold. */
  readonly high: boolean;
  readonly kept?: boolean;
  /** The entropy is a lower bound. */
  readonly least?: boolean;
}

export function entropyWords(value: string, { high, least }: Pick<StepMark, 'high' | 'least'>): string {
  if (least) return high ? t('entropy at least {0}, high', value) : t('entropy at least {0}', value);
  return high ? t('entropy {0}, high', value) : t('entropy {0}', value);
}
/**
 * Share of a trajectory's steps that are marked as high-entropy. The mask keeps four fifths
 * (webview/README.md#high-entropy-marks):
 * marking all of those would mark nothing.
 */
const highShare = 0.2;

export function markSteps(steps: readonly StepView[], threshold: number | undefined): StepMark[] {
  const known = steps
    .map((x) => x.entropy)
    .filter((e): e is number => e !== undefined && Number.isFinite(e))
    .sort((a, b) => b - a);
  const cut = known[Math.max(0, Math.ceil(known.length * highShare) - 1)];
  return steps.map((x) => ({
    entropy: x.entropy !== undefined && Number.isFinite(x.entropy) ? x.entropy : undefined,
    kept: x.kept,
    least: x.entropyBound === 'lower' || undefined,
    high:
      x.entropy !== undefined &&
      cut !== undefined &&
      x.entropy > 0 &&
      x.entropy >= cut &&
      x.entropy >= (threshold ?? 0),
  }));
}
/** Next or previous high-entropy step from a position; undefined when there is none on that side. */
export function nextHigh(marks: readonly StepMark[], from: number, direction: 1 | -1): number | undefined {
  for (let i = from + direction; i >= 0 && i < marks.length; i += direction) if (marks[i]!.high) return i;
  return undefined;
}

export interface Bar {
  /** Steps from..to-1 that it stands for. */
  readonly from: number;
  readonly to: number;
  readonly x: number;
  readonly width: number;
  readonly y: number;
  readonly height: number;
  readonly high: boolean;
  /** Absent before the mask is known; a bar of several steps is dropped when all are. */
  readonly kept?: boolean;
  /** The highest of its steps; absent where none has one. */
  readonly entropy?: number;
  /** The step that has it. */
  readonly peak: number;
}
export interface Timeline {
  readonly bars: readonly Bar[];
  readonly slot: number;
  readonly perBar: number;
  readonly max: number;
  readonly thresholdY?: number;
  readonly width: number;
}

/**
 * Least width of a bar's slot, px: below it steps share bars. A bar is no wider than a finger's breadth, in the middle
 * of its slot.
 */
const minSlot = 3,
  widestBar = 32;

/**
 * Bars over `width` x `height` px. Slots are `maxSlot` wide (the filmstrip's items, so that bars stand under their
 * pictures) until that does not fit; then narrower, then several steps to a bar, so that nothing ever scrolls.
 */
export function timeline(
  marks: readonly StepMark[],
  o: { readonly width: number; readonly height: number; readonly maxSlot: number; readonly threshold?: number },
): Timeline {
  const n = marks.length,
    width = Math.max(1, o.width);
  const perBar = Math.max(1, Math.ceil((n * minSlot) / width)),
    count = Math.ceil(n / perBar),
    slot = count ? Math.min(o.maxSlot * perBar, width / count) : o.maxSlot;
  const max = Math.max(1e-6, (o.threshold ?? 0) * 1.25, ...chunkMax(marks));
  const barWidth = Math.min(Math.max(1, slot - Math.min(slot * 0.3, 4)), widestBar),
    yOf = (e: number): number => o.height - (o.height * Math.max(0, e)) / max;
  const bars: Bar[] = [];
  for (let b = 0; b < count; b++) {
    const from = b * perBar,
      to = Math.min(n, from + perBar),
      part = marks.slice(from, to);
    let peak = from;
    for (let i = from; i < to; i++) if ((marks[i]!.entropy ?? -1) > (marks[peak]!.entropy ?? -1)) peak = i;
    const entropy = marks[peak]!.entropy,
      kept = part.every((m) => m.kept === undefined) ? undefined : part.some((m) => m.kept);
    const top = entropy === undefined ? o.height : Math.min(yOf(entropy), o.height - 1);
    bars.push({
      from,
      to,
      x: b * slot + (slot - barWidth) / 2,
      width: barWidth,
      y: top,
      height: o.height - top,
      high: part.some((m) => m.high),
      peak,
      entropy,
      kept,
    });
  }
  return { bars, slot, perBar, max, width, thresholdY: o.threshold === undefined ? undefined : yOf(o.threshold) };
}
/** Highest entropies in pieces small enough to spread as arguments. */
function chunkMax(marks: readonly StepMark[]): number[] {
  const out: number[] = [];
  for (let i = 0; i < marks.length; i += 4096)
    out.push(marks.slice(i, i + 4096).reduce((m, x) => Math.max(m, x.entropy ?? 0), 0));
  return out;
}
/** Step under a pixel; undefined beside the bars. */
export function stepAt(t: Timeline, x: number): number | undefined {
  const bar = t.bars[Math.floor(x / t.slot)];
  if (x < 0 || !bar) return undefined;
  return Math.min(bar.to - 1, bar.from + Math.floor(((x - Math.floor(x / t.slot) * t.slot) / t.slot) * t.perBar));
}
/** Middle of a step's slot. */
export const xOf = (t: Timeline, step: number): number => ((step + 0.5) / t.perBar) * t.slot;
