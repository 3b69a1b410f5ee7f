import { random, spells, type EmbeddedPolicySpec, type Random } from '../../domain/index.js';
import { bucketOf } from '../../policy/embedded/instruction.js';
import type { ScreensRequest, Word } from './types.js';

/** Texts that one call of the drawing program chooses from. */
const TEXTS = 480;
/** Share of known words; the rest is random, so that characters are learned and not words. */
const KNOWN = 0.3;
/** Tries for a random text that shows nothing held out. */
const TRIES = 20;

const SMALL = 'abcdefghijklmnopqrstuvwxyz',
  LARGE = SMALL.toUpperCase(),
  DIGITS = '0123456789',
  SIGNS = ".,:;!?'-_+*/=()>@&";

/**
 * The texts of the screens from number `from` on: known words alone for a policy that knows words by number; mostly
 * random strings for one that spells. Nothing that is held out is among them, not as a part of another text either.
 */
export function lessonTexts(
  spec: EmbeddedPolicySpec,
  o: Pick<ScreensRequest, 'seed' | 'words' | 'withheld'>,
  from: number,
): readonly Word[] {
  if (!spells(spec)) return o.words;
  const r = random(`lesson/${o.seed}/${from}`),
    out: Word[] = [];
  while (out.length < TEXTS) {
    const known = o.words.length > 0 && r.next() < KNOWN ? r.pick(o.words) : undefined,
      text = known?.text ?? allowed(r, o.withheld);
    if (text !== undefined) out.push({ text, bucket: known?.bucket ?? bucketOf(spec, text) });
  }
  return out;
}

function allowed(r: Random, withheld: (text: string) => boolean): string | undefined {
  for (let k = 0; k < TRIES; k++) {
    const text = randomText(r);
    if (!withheld(text)) return text;
  }
  return undefined;
}

const draw = (r: Random, from: string, n: number): string =>
  Array.from({ length: n }, () => from[r.int(from.length)]!).join('');

/** A word-like string, a number, a line with signs, or several words. */
function randomText(r: Random): string {
  const kind = r.next();
  if (kind < 0.45) return word(r);
  if (kind < 0.55) return draw(r, DIGITS, 1 + r.int(5));
  if (kind < 0.7) return draw(r, SMALL + LARGE + DIGITS, 1 + r.int(8));
  if (kind < 0.85) return draw(r, SMALL + LARGE + DIGITS + SIGNS + SIGNS, 2 + r.int(7));
  return Array.from({ length: 2 + r.int(2) }, () => (r.next() < 0.8 ? word(r) : draw(r, DIGITS, 1 + r.int(3)))).join(
    ' ',
  );
}
function word(r: Random): string {
  const n = 2 + r.int(8),
    kind = r.next();
  if (kind < 0.5) return draw(r, LARGE, 1) + draw(r, SMALL, n - 1);
  return draw(r, kind < 0.85 ? SMALL : LARGE, n);
}
