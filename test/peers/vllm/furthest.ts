import { join } from 'node:path';
import type { TokenSequence } from '../../../runtime/trainer/remote/sample.js';
import { ask, exportModel, loadAdapter, toldIn, unloadAdapter, type Told } from './again.js';
import type { FarToken, Trainer } from './scores.js';
import { isCompletion, isDecision, type Asked, type Exchange, type Wire } from './wire.js';

/** What was special about the tokens that are furthest from the trainer's, and what they are when asked for again. */

/** What else a server had to do while it answered. */
export interface Beside {
  /** Completions that were under way at some moment of the answer, this one not counted. */
  readonly requests: number;
  /** Of those, of other adapters: in one batch with this one. */
  readonly of_other_adapters: number;
  readonly adapters_loaded: number;
  readonly adapters_unloaded: number;
}
/** Differences from the trainer's log-prob of the token; null where a drawn token before it differed. */
export interface AskedAgain {
  /** Alone, under a name that the server has not had: nothing of its prompt is cached. */
  readonly alone_uncached: number | null;
  readonly cached_tokens_uncached: number | null;
  /** Alone once more, its prompt cached as far as it can be. */
  readonly alone_cached: number | null;
  readonly cached_tokens_cached: number | null;
  /** With 15 others. */
  readonly among_others: number | null;
}
export interface FurthestFigures {
  readonly difference: number;
  readonly logprob: number;
  readonly trainer_logprob: number;
  readonly probability: number;
  /** Among the most probable that were listed, from 1; null: the last of them or none, where vLLM puts any that was drawn. */
  readonly rank: number | null;
  readonly token: number;
  /** In the answer, from 0. */
  readonly position: number;
  readonly answer_tokens: number;
  readonly prompt_tokens: number;
  readonly images: number;
  readonly version: number;
  /** Of the prompt, when it was answered. */
  readonly cached_tokens: number | null;
  /** Largest difference of the answer's other tokens. */
  readonly others_of_the_answer: number;
  readonly beside: Beside;
  readonly again: AskedAgain;
  /** The trainer's log-prob of the token when it scores this answer alone, against that in its batches. */
  readonly trainer_alone: number;
}
export interface Again {
  readonly server: string;
  readonly wires: readonly Wire[];
  readonly run: string;
  readonly work: string;
  readonly trainer: Trainer;
  readonly signal: AbortSignal;
}
const OTHERS = 15;

export async function explained(tokens: readonly FarToken[], o: Again): Promise<FurthestFigures[]> {
  const figures: FurthestFigures[] = [];
  for (const [n, token] of tokens.entries()) figures.push(await explain(token, n, o));
  return figures;
}

async function explain(t: FarToken, n: number, o: Again): Promise<FurthestFigures> {
  const { answer, position: at, own, difference } = t,
    [sequence] = answer.sample.sequences,
    { exchange, wire } = exchangeOf(sequence!, answer.version, o.wires),
    told = toldIn(exchange.answer),
    said = JSON.parse(exchange.answer) as { prompt_token_ids: number[] },
    off = told.logprobs.map((x, i) => (i === at ? 0 : Math.abs(Math.min(0, x) - own[i]!))),
    again = await askedAgain(t, n, exchange, wire, o),
    [alone] = await o.trainer.scores(answer.version, [answer]);
  return {
    difference,
    logprob: told.logprobs[at]!,
    trainer_logprob: own[at]!,
    probability: Math.exp(told.logprobs[at]!),
    rank: rankIn(exchange, at),
    ...{ token: told.tokens[at]!, position: at, answer_tokens: told.tokens.length },
    prompt_tokens: said.prompt_token_ids.length,
    images: sequence!.prompt.filter((c) => c.type === 'image').length,
    version: answer.version,
    cached_tokens: told.cached ?? null,
    others_of_the_answer: Math.max(0, ...off),
    beside: besides(exchange, wire.exchanges),
    again,
    trainer_alone: Math.abs(alone![at]! - own[at]!),
  };
}

/** The one that gave these tokens and log-probs under that version. */
function exchangeOf(
  { answer, logprobs }: TokenSequence,
  version: number,
  wires: readonly Wire[],
): { readonly exchange: Exchange; readonly wire: Wire } {
  for (const wire of wires)
    for (const exchange of wire.exchanges) {
      if (!isDecision(exchange) || exchange.status !== 200 || !exchange.asked.model?.endsWith(`@v${version}`)) continue;
      const told = toldIn(exchange.answer);
      if (
        told.tokens.length === answer.length &&
        told.tokens.every((x, i) => x === answer[i] && Math.fround(Math.min(0, told.logprobs[i]!)) === logprobs?.[i])
      )
        return { exchange, wire };
    }
  throw new Error('an answer was scored that no server gave');
}

/** What overlapped it in time on its server. Pure. */
export function besides(of: Exchange, exchanges: readonly Exchange[]): Beside {
  const during = exchanges.filter((e) => e !== of && e.began <= of.ended && e.ended >= of.began),
    completions = during.filter(isCompletion);
  return {
    requests: completions.length,
    of_other_adapters: completions.filter((e) => e.asked.model !== of.asked.model).length,
    adapters_loaded: during.filter((e) => e.path.endsWith('/load_lora_adapter')).length,
    adapters_unloaded: during.filter((e) => e.path.endsWith('/unload_lora_adapter')).length,
  };
}
const rankIn = ({ answer }: Exchange, at: number): number | null => {
  const { choices } = JSON.parse(answer) as {
      choices: { logprobs: { content: { logprob: number; top_logprobs?: { logprob: number }[] }[] } }[];
    },
    token = choices[0]!.logprobs.content[at]!,
    listed = token.top_logprobs ?? [],
    above = listed.filter((t) => t.logprob > token.logprob).length;
  return above < listed.length - 1 ? above + 1 : null;
};

/** The version's adapter as `export-model` writes it, loaded anew. */
async function askedAgain(t: FarToken, n: number, of: Exchange, wire: Wire, o: Again): Promise<AskedAgain> {
  const { version } = t.answer,
    { server, run, work, signal } = o,
    name = `again-${n}@v${version}`,
    folder = join(work, `again-${n}`);
  await exportModel(run, version, folder, false, signal);
  await loadAdapter(server, name, folder, signal);
  const uncached = await ask(server, of.asked, name, signal),
    cached = await ask(server, of.asked, name, signal),
    [among] = await Promise.all([of.asked, ...neighbours(of, wire)].map((a) => ask(server, a, name, signal)));
  await unloadAdapter(server, name, signal);
  const first = toldIn(of.answer),
    off = (told: Told): number | null => {
      const same = first.tokens.slice(0, t.position + 1).every((x, i) => x === told.tokens[i]);
      return same ? Math.abs(Math.min(0, told.logprobs[t.position]!) - t.own[t.position]!) : null;
    };
  return {
    alone_uncached: off(uncached),
    cached_tokens_uncached: uncached.cached ?? null,
    alone_cached: off(cached),
    cached_tokens_cached: cached.cached ?? null,
    among_others: off(among!),
  };
}
/** Those that were under way beside it, and others of its time up to a full batch. */
function neighbours(of: Exchange, wire: Wire): Asked[] {
  const far = (e: Exchange): number => Math.max(0, e.began - of.ended, of.began - e.ended);
  return wire.exchanges
    .filter((e) => e !== of && isDecision(e))
    .sort((a, b) => far(a) - far(b))
    .slice(0, OTHERS)
    .map((e) => e.asked);
}
