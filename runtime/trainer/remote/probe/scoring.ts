import { floats } from '../wire/index.js';
import { apart, datum, MAIN, OTHER, someTokens, type Lab, type Text } from './lab.js';
import type { Size } from '../../../domain/index.js';
import { bad, judged, refusal, tried, type Checks, type Finding } from './checks.js';
import { picture } from './picture.js';

/** Checks of the forward pass, before anything is trained. */

/** Log-probs that differ by less are the same in any arithmetic that trains. */
const SAME = 0.02;

export async function scoringChecks(lab: Lab, checks: Checks): Promise<void> {
  await checks.make('scoring', true, () => repeatable(lab));
  const scored = await checks.make('weight-zero', true, () => weightZero(lab));
  lab.scoring = scored ? 0 : 1;
  await checks.make('targets', true, () => targets(lab));
  await checks.make('datum-order', true, () => datumOrder(lab));
}

/** The same text twice, alone and in company: what differs is the server's arithmetic. */
function repeatable(lab: Lab): Promise<Finding> {
  return lab.fresh(async (m) => {
    const [alone] = await lab.rows(m, [MAIN], 1),
      again = await lab.rows(m, [MAIN, MAIN], 1);
    const squares = again.flatMap((row) => Array.from(row, (x, i) => (x - alone![i]!) ** 2));
    lab.noise = Math.sqrt(squares.reduce((a, b) => a + b, 0) / squares.length);
    const positive = alone!.some((x) => x > 1e-3);
    return judged(
      lab.noise < 0.1 && !positive,
      `${alone!.length} log-probs; two passes differ by ${lab.noise.toExponential(1)}`,
      positive ? 'a log-prob is above 0' : `two passes over the same text differ by ${lab.noise.toPrecision(2)}`,
    );
  });
}
function weightZero(lab: Lab): Promise<Finding> {
  return lab.fresh(async (m) => {
    const [one] = await lab.rows(m, [MAIN], 1),
      [zero] = await lab.rows(m, [MAIN], 0),
      d = apart(one!, zero!);
    return judged(
      d < SAME + 3 * lab.noise,
      'targets of weight 0 are scored as any other',
      `targets of weight 0 get other log-probs than those of weight 1 (by ${d.toPrecision(2)} nat): they are not scored`,
    );
  });
}
/** Every second target is changed: those rows change, and no other. */
function targets(lab: Lab): Promise<Finding> {
  return lab.fresh(async (m) => {
    const others = someTokens('other targets'),
      changed = { ...MAIN, targets: MAIN.targets.map((t, i) => (i % 2 === 0 ? others[i]! : t)) },
      [a] = await lab.rows(m, [MAIN], 1),
      [b] = await lab.rows(m, [changed], 1);
    const moved = [0, 1].map((odd) => {
      const rows = Array.from(a!.keys()).filter((i) => i % 2 === odd);
      return rows.reduce((n, i) => n + Math.abs(a![i]! - b![i]!), 0) / rows.length;
    }) as [number, number];
    return judged(
      moved[0] > 10 * lab.noise && moved[1] < SAME + 3 * lab.noise && moved[1] < moved[0] / 3,
      'each position is scored against its own target',
      `targets do not belong to their positions: changed ones moved by ${moved[0].toPrecision(2)}, their neighbours by ${moved[1].toPrecision(2)}`,
    );
  });
}
function datumOrder(lab: Lab): Promise<Finding> {
  return lab.fresh(async (m) => {
    const [a] = await lab.rows(m, [MAIN], 1),
      [first, second] = await lab.rows(m, [MAIN, OTHER], 1),
      [right, swapped] = [apart(a!, first!), apart(a!, second!)];
    return judged(
      right < SAME + 3 * lab.noise,
      'log-probs come back in the order of the datums',
      swapped < SAME + 3 * lab.noise
        ? 'log-probs of a request come back in another order than its datums'
        : `a text has other log-probs beside another one (by ${right.toPrecision(2)} nat)`,
    );
  });
}

/** The screen of a run, and how many tokens it may have there. */
export interface ProbeScreen {
  readonly size: Size;
  /** The first of these that the server takes is the one. */
  readonly tokens: readonly number[];
  /** What to do where it takes none of them; without it any picture that it takes will do. */
  readonly otherwise?: string;
}
/** Two pictures of one size that show different things. */
interface Pictures {
  readonly data: readonly [Uint8Array, Uint8Array];
  readonly format: 'png';
  /** Tokens that either stands for. */
  readonly tokens: number;
}
/** Pictures without a run: 448 pixels are a whole number of the patches that models use. */
const SIZE = 448,
  SIDES = [28, 32, 64, 16, 14, 56];

/** Text, a picture, text; `at` = picture behind all text instead. */
function pictured(image: Pictures, which: 0 | 1, o: { readonly last?: boolean; readonly tokens?: number } = {}): Text {
  const text = someTokens('pictured', 16),
    tokens = o.tokens ?? image.tokens,
    shown = { type: 'image', data: image.data[which], format: image.format, expectedTokens: tokens } as const,
    [a, b] = [text.subarray(0, 6), text.subarray(6)].map((t) => ({ type: 'encoded_text', tokens: t }) as const);
  return {
    chunks: o.last ? [a!, b!, shown] : [a!, shown, b!],
    targets: someTokens('pictured targets', 16 + tokens),
  };
}
const AFTER_TEXT = 10;

export async function imageChecks(lab: Lab, checks: Checks, needed: boolean, screen?: ProbeScreen): Promise<void> {
  const of = screen && (await countedPictures(lab, screen.size, screen.tokens));
  if (screen?.otherwise !== undefined && typeof of === 'string') {
    const { width, height } = screen.size;
    checks.add('images', needed, bad(`${of} (a screen of ${width}x${height}). ${screen.otherwise}`));
    return;
  }
  const square = { width: SIZE, height: SIZE },
    found =
      typeof of === 'object'
        ? of
        : await countedPictures(
            lab,
            square,
            SIDES.map((side) => (SIZE / side) ** 2),
          );
  if (typeof found === 'string') {
    checks.add('images', needed, {
      ok: false,
      detail:
        'no picture is taken with any number of tokens that a model gives it; the model takes text alone, or the engine was started with --min-pixels or --max-pixels, which a run then has in trainer.remote.options.minPixels and maxPixels',
    });
    return;
  }
  await checks.make('images', needed, () => shown(lab, found));
  await checks.make('chunk-order', needed, () => chunkOrder(lab, found));
  await checks.make('image-tokens', false, () => wrongCount(lab, found));
}
/** Pictures with the number of tokens that this model gives them; or why it takes none of these numbers. */
async function countedPictures(lab: Lab, size: Size, numbers: readonly number[]): Promise<Pictures | string> {
  const data = await Promise.all([picture(size, 1), picture(size, 2)]);
  let why = '';
  for (const tokens of numbers) {
    const image: Pictures = { data, format: 'png', tokens };
    // Asked on a fresh model: some servers take nothing after a refusal.
    const no = await refusal(() => lab.fresh((m) => lab.rows(m, [pictured(image, 0)], 1)));
    if (no === undefined) return image;
    why ||= no;
  }
  return why;
}
function shown(lab: Lab, image: Pictures): Promise<Finding> {
  return lab.fresh(async (m) => {
    const rows: Float32Array[] = [];
    for (const which of [0, 0, 1] as const) rows.push((await lab.rows(m, [pictured(image, which)], 1))[0]!);
    const n = rows[0]!.length,
      same = apart(rows[0]!, rows[1]!, n - AFTER_TEXT),
      other = apart(rows[0]!, rows[2]!, n - AFTER_TEXT),
      before = apart(rows[0]!, rows[2]!, 0, 5);
    if (before > SAME + 3 * lab.noise)
      return { ok: false, detail: `a picture changes the text before it (by ${before.toPrecision(2)} nat)` };
    return judged(
      other > 1e-4 + 3 * same,
      `${image.tokens} tokens; another picture moves the text after it by ${other.toPrecision(2)} nat`,
      'what a picture shows changes nothing: pictures are dropped',
    );
  });
}
/** The same targets under two orders of the chunks: a server that sorts them scores both alike. */
function chunkOrder(lab: Lab, image: Pictures): Promise<Finding> {
  return lab.fresh(async (m) => {
    const [between] = await lab.rows(m, [pictured(image, 0)], 1),
      [again] = await lab.rows(m, [pictured(image, 0)], 1),
      [last] = await lab.rows(m, [pictured(image, 0, { last: true })], 1),
      d = apart(between!, last!);
    return judged(
      d > 1e-3 + 3 * apart(between!, again!),
      'a picture stands where it was put',
      'a picture between two texts and one behind them are the same: chunks are reordered',
    );
  });
}
function wrongCount(lab: Lab, image: Pictures): Promise<Finding> {
  return lab.fresh(async (m) => {
    const no = await refusal(() => lab.rows(m, [pictured(image, 0, { tokens: image.tokens + 1 })], 1));
    return judged(
      no !== undefined,
      'a picture with a wrong number of tokens is refused',
      'a picture with a wrong number of tokens is taken: processor settings that differ from those of the rollouts train wrong and nobody says so',
    );
  });
}

/** Some servers take nothing more after a call they refused; the driver then goes on with a fresh model. */
export function refusals(lab: Lab): Promise<Finding> {
  return lab.fresh(async (m) => {
    const broken = { ...datum(MAIN, {}), inputs: { ...datum(MAIN, {}).inputs, weights: floats([1, 2, 3]) } };
    const no = await refusal(() => m.forward([broken], lab.signal));
    if (no === undefined) return { ok: false, detail: 'weights of another length than the targets are taken' };
    const next = await tried(async () => {
      await lab.rows(m, [MAIN], 1);
      return { ok: true, detail: 'a call after a refused one is taken' };
    });
    return next.ok ? next : { ok: false, detail: `after a refused call nothing is taken any more: ${next.detail}` };
  });
}
