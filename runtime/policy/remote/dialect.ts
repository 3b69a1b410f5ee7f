/**
 * How model servers differ in what they are asked beside OpenAI's chat completions. Which one it is, the server itself
 * says in its list of models; whoever does not say is spoken to as vLLM is (our engine speaks that)
 * (runtime/policy/README.md#two-dialects).
 */
import { isObject } from '../../foreign/json.js';

export interface Dialect {
  readonly server: 'vLLM' | 'SGLang';
  /** Where the routes that load and unload adapters are: under /v1, or beside it. */
  readonly adapters: 'under' | 'beside';
  /** The model name with which requests address an adapter that was loaded as `name`. */
  readonly called: (name: string) => string;
  /**
   * How the server gives log-probs of given tokens: all in one answer (`/generate`), or each as the only token that it
   * may say (`/v1/completions`).
   */
  readonly scores: 'together' | 'one-by-one';
}

/** Base address of the routes that are not OpenAI's: beside /v1. */
export const besideOf = (url: string): string => url.replace(/\/v1$/, '');

type Card = Readonly<Record<string, unknown>>;

const VLLM: Dialect = { server: 'vLLM', adapters: 'under', called: (name) => name, scores: 'one-by-one' };

/** `cards`: the entries of a server's list of models. */
export function dialectOf(cards: readonly unknown[]): Dialect {
  const own = cards.filter((c): c is Card => isObject(c) && c['owned_by'] === 'sglang'),
    base = own.find((c) => (c['parent'] ?? null) === null)?.['id'];
  if (typeof base !== 'string') return VLLM;
  return { server: 'SGLang', adapters: 'beside', called: (name) => `${base}:${name}`, scores: 'together' };
}
