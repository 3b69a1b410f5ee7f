import { Alignment, certainty, type Hit } from './align.js';
import { CLASSES, spell } from './alphabet.js';
import { gridOf, READING, type EmbeddedPolicySpec } from './policySpec.js';

/**
 * The words of an instruction on the screen, as the policy that spells is told of them. The same functions serve its
 * replicas and its trainer, so both see the same.
 */

/** Facts of a token: how sure its best place is, how sure the next one elsewhere, row and column of the best, 0 to 1. */
export const FACTS = 4;

export interface FoundWords {
  /** [tokens, cells]: how surely a token stands in a cell, at the middle of the text. */
  readonly found: Float32Array;
  /** [tokens, FACTS] */
  readonly facts: Float32Array;
}

/** The stretch of part `n`, in what a graph says of `of` screens or rows; a view. */
export const partOf = (all: Float32Array, n: number, of: number): Float32Array =>
  all.subarray((n * all.length) / of, ((n + 1) * all.length) / of);

/** What the reader sees on one screen: logits [rows * columns, classes]. */
export function alignmentOf(spec: EmbeddedPolicySpec, logits: Float32Array): Alignment {
  const { rows } = gridOf(spec);
  return Alignment.of({ rows, cols: logits.length / CLASSES / rows, classes: CLASSES, logits });
}

/** Finds every token of an encoded instruction; writes into `into`, whose arrays may be views. */
export function findWords(spec: EmbeddedPolicySpec, instruction: Int32Array, seen: Alignment, into: FoundWords): void {
  const { maxTokens, spelling = 0 } = spec.instruction,
    { rows, cols } = gridOf(spec),
    // Policies before `parts` have not learned what one character, found where it stands alone, may mean.
    shortest = spec.parts ? 1 : 2;
  into.found.fill(0);
  into.facts.fill(0);
  const known = new Map<string, number>();
  for (let t = 0; t < maxTokens; t++) {
    const from = 2 * maxTokens + t * spelling,
      all = instruction.subarray(from, from + spelling),
      end = all.indexOf(0),
      text = end < 0 ? all : all.subarray(0, end);
    if (text.length < shortest) continue;
    const key = text.join(),
      before = known.get(key);
    const cells = rows * cols;
    if (before !== undefined) {
      into.found.copyWithin(t * cells, before * cells, (before + 1) * cells);
      into.facts.copyWithin(t * FACTS, before * FACTS, (before + 1) * FACTS);
      continue;
    }
    known.set(key, t);
    putHits(
      spec,
      seen.find(text),
      into.found.subarray(t * cells, (t + 1) * cells),
      into.facts.subarray(t * FACTS, (t + 1) * FACTS),
    );
  }
}

function putHits(spec: EmbeddedPolicySpec, hits: readonly Hit[], found: Float32Array, facts: Float32Array): void {
  const { rows, cols } = gridOf(spec);
  let best = -1;
  for (const h of hits) {
    const cell = cellOf(spec, h),
      sure = certainty(h.score);
    if (sure > found[cell]!) found[cell] = sure;
    if (best < 0 || found[cell]! > found[best]!) best = cell;
  }
  if (best < 0) return;
  let second = 0;
  for (const h of hits) {
    const cell = cellOf(spec, h);
    // The cells beside the best one are the same place.
    if (Math.abs(cell - best) > 2 && found[cell]! > second) second = found[cell]!;
  }
  facts[0] = found[best]!;
  facts[1] = second;
  facts[2] = (Math.floor(best / cols) + 1) / rows;
  facts[3] = ((best % cols) + 1) / cols;
}

/** The cell at the middle of what was found. */
function cellOf(spec: EmbeddedPolicySpec, h: Hit): number {
  const { cols } = gridOf(spec),
    middle = ((h.from + h.to + 1) / 2) * (READING.column / spec.obs.cell);
  return h.row * cols + Math.min(cols - 1, Math.floor(middle));
}

/** The cell where a text stands most surely; undefined where it is not on the screen. */
export function cellOfText(spec: EmbeddedPolicySpec, seen: Alignment, text: string): number | undefined {
  let best: Hit | undefined;
  for (const h of seen.find(spell(text, MOST))) if (!best || h.score > best.score) best = h;
  return best && best.score > ABSENT ? cellOf(spec, best) : undefined;
}
const MOST = 40,
  ABSENT = -1;

/** The text that stands at a cell; undefined where the reader sees none. */
export function textAtCell(spec: EmbeddedPolicySpec, seen: Alignment, cell: number): string | undefined {
  const { cols } = gridOf(spec),
    perCell = spec.obs.cell / READING.column;
  return seen.textAt(Math.floor(cell / cols), Math.floor(((cell % cols) + 0.5) * perCell));
}
