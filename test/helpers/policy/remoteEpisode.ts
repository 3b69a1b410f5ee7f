/** Episodes of a vision-language model as `ChatSession` records them, with the prompts that a test can compare them with. */
import { hash32, random } from '../../../runtime/domain/index.js';
import type { Action, FrameRef, RejectedAnswer, Step, TokenTrace } from '../../../runtime/domain/index.js';
import { packAlternatives } from '../../../runtime/data/alternatives.js';
import type { StepExtra } from '../../../runtime/data/events.js';
import { recordPrompt, type SentImage } from '../../../runtime/policy/remote/promptRecord.js';

export const IMAGE_PAD = 151_655;

export interface RemoteTurn {
  readonly frame: FrameRef;
  readonly text: string;
  readonly actions?: readonly Action[];
  /** Answers on this screen that were no actions. */
  readonly rejected?: readonly { readonly text: string; readonly reason: string; readonly finish?: string }[];
  /** The server did not say the prompt's tokens. */
  readonly silent?: boolean;
  /** A person acted; nothing was sampled. */
  readonly human?: boolean;
  /** Tokens of the answer whose log-prob the server left out. */
  readonly unknown?: readonly number[];
  /** Why the server ended the answer; `stop` where nothing is said, nothing where it is empty. */
  readonly finish?: string;
}
export interface RemoteEpisode {
  readonly steps: readonly Step[];
  /** Beside each step. */
  readonly extras: readonly StepExtra[];
  /** What was sampled, oldest first: the prompt as symbols and the frames its images show. */
  readonly sampled: readonly {
    readonly step: number;
    readonly rejected: boolean;
    readonly symbols: readonly number[];
    readonly frames: readonly string[];
    readonly answer: readonly number[];
  }[];
}

/** Pieces of a text as a tokenizer might cut it. */
export const piecesOf = (text: string): string[] => text.match(/ ?[A-Za-z]{1,7}|\d|\s|[^\sA-Za-z\d]{1,2}/g) ?? [];
const idOf = (piece: string): number => hash32(piece) % 151_000;
const idsOf = (text: string): number[] => piecesOf(text).map(idOf);

/** Tokens that one image of 1280x720 takes (Qwen2.5-VL). */
const TOKENS_AN_IMAGE = 1196;
const PREAMBLE = 'You are a GUI agent. You are given a task and your action history, with screenshots. ';

/** Steps and what was sampled; `images` newest screenshots are kept in a prompt. */
export function remoteEpisode(
  turns: readonly RemoteTurn[],
  o: {
    readonly images?: number;
    readonly version?: number;
    readonly instruction?: string;
    readonly seed?: number;
  } = {},
): RemoteEpisode {
  const r = random(`remote episode/${o.seed ?? 0}`),
    keep = o.images ?? 5,
    steps: Step[] = [],
    extras: StepExtra[] = [],
    sampled: RemoteEpisode['sampled'][number][] = [],
    frames: string[] = [],
    past: { readonly image?: SentImage; readonly text: string }[] = [];
  let before: Int32Array = new Int32Array();
  const version = o.version ?? 12;

  const ask = (
    turn: RemoteTurn,
    step: number,
    { text, finish = 'stop' }: Pick<RemoteTurn, 'text' | 'finish'>,
    rejected: boolean,
  ): Pick<Step, 'tokens' | 'prompt'> => {
    const answer = [...idsOf(text), 151_645],
      tokens = { ...traceLike(answer, r, turn.unknown), ...(finish ? { finish } : {}) };
    if (turn.silent) return { tokens };
    const image = sentOf(turn.frame, frames, past),
      shown = new Set([...past.filter((p) => p.image), { image }].slice(-keep).map((p) => p.image)),
      ids: number[] = idsOf(PREAMBLE + (o.instruction ?? ''));
    const pads = (): number[] => new Array<number>(TOKENS_AN_IMAGE).fill(IMAGE_PAD);
    for (const p of past) ids.push(...(shown.has(p.image) ? pads() : []), 151_644, ...idsOf(p.text));
    ids.push(...pads(), 151_644);
    const sent = [...past.flatMap((p) => (p.image && shown.has(p.image) ? [p.image] : [])), image];
    const { delta, sequence } = recordPrompt(before, ids, Int32Array.from(answer), {
      pad: IMAGE_PAD,
      sent,
      known: frames.length,
    });
    if (image.number === frames.length) frames.push(turn.frame.hash);
    const symbols = [...sequence.subarray(0, sequence.length - answer.length)];
    sampled.push({ step, rejected, symbols, frames: sent.map((s) => frames[s.number]!), answer });
    before = sequence;
    return { tokens, prompt: delta };
  };

  turns.forEach((turn, index) => {
    const common = {
      index,
      frame: turn.frame,
      actions: turn.actions ?? [],
      settled: true,
      timings: { observe: 4, queue: 20, decide: 1800, perform: 30, settle: 220 },
    };
    if (turn.human) {
      steps.push({ ...common, origin: 'human' });
      extras.push({});
      past.push({ text: turn.text });
      return;
    }
    const rejected = turn.rejected?.map((a): RejectedAnswer => {
      const { text, reason } = a;
      return { text, reason, ...ask(turn, index, a, true), version };
    });
    const own = ask(turn, index, turn, false);
    steps.push({ ...common, origin: 'policy', thought: thoughtOf(turn.text), ...own, rejected, version });
    extras.push({
      ...wordsLike(turn.text, own.tokens!, r),
      rejectedLabels: turn.rejected?.map((a) => [...piecesOf(a.text), '<|im_end|>']),
      replica: 'replica-1',
    });
    past.push(turn.silent ? { text: turn.text } : { image: sentOf(turn.frame, frames, past), text: turn.text });
  });
  return { steps, extras, sampled };
}

const thoughtOf = (text: string): string | undefined => /Thought: (.*?)(?:\nAction:|$)/s.exec(text)?.[1];

/** A screen that looks like an earlier one is the same image. */
function sentOf(
  frame: FrameRef,
  frames: readonly string[],
  past: readonly { readonly image?: SentImage }[],
): SentImage {
  const sha256 = frame.hash.split('').reverse().join('');
  const known = past.find((p) => p.image?.sha256 === sha256)?.image?.number ?? frames.lastIndexOf(frame.hash);
  return { number: known < 0 ? frames.length : known, sha256, format: 'png' };
}

/** Most tokens are certain, some are not, as those of a trained model are. */
function traceLike(ids: readonly number[], r: { next(): number }, unknown: readonly number[] = []): TokenTrace {
  const p = ids.map(() => (r.next() < 0.6 ? 1 - r.next() * 0.01 : 0.15 + 0.8 * r.next()));
  return {
    ids: Int32Array.from(ids),
    logprobs: Float32Array.from(p, (x, i) => (unknown.includes(i) ? NaN : Math.log(x))),
    entropies: Float32Array.from(p, (x, i) => (unknown.includes(i) ? 0 : -x * Math.log(x) - (1 - x) * Math.log(1 - x))),
    bound: 'lower',
  };
}

const OTHERS = [' the', ' button', ' menu', ' to', ' and', '1', '4', ' Click', ' field', '\n', ' press', ' open'];
/** Up to four alternatives of at least 1 %, where the token was not certain. */
function wordsLike(text: string, t: TokenTrace, r: { next(): number; int(n: number): number }): StepExtra {
  const labels = [...piecesOf(text), '<|im_end|>'];
  return {
    labels,
    packed: packAlternatives(
      labels.map((label, i) => {
        let rest = Number.isNaN(t.logprobs[i]!) ? 0 : 1 - Math.exp(t.logprobs[i]!);
        const list: { label: string; probability: number }[] = [];
        while (rest >= 0.02 && list.length < 4) {
          const probability = rest * (0.4 + 0.5 * r.next()),
            other = OTHERS[r.int(OTHERS.length)]!;
          rest -= probability;
          if (probability >= 0.01 && other !== label && !list.some((a) => a.label === other))
            list.push({ label: other, probability: Number(probability.toPrecision(4)) });
        }
        return list;
      }),
    ),
  };
}
