import { type ServerFacts } from '../../domain/index.js';
import { isObject } from '../../foreign/json.js';
import { orUndefined } from '../../concurrency/failures.js';
import { withDeadline } from '../../concurrency/deadline.js';
import { ModelServer, type ModelServerOptions } from './modelServer.js';

/** A start does not wait longer for what is only written down. */
const PATIENCE_MS = 5000;
/** Most characters of a text, and most settings, that are kept of a server's answer. */
const MOST_TEXT = 200,
  MOST_SETTINGS = 24;

/** Facts that a server gives about itself: vLLM its version and context, our engine all of them. Never rejects. */
export async function factsOf(o: ModelServerOptions, model: string, signal: AbortSignal): Promise<ServerFacts> {
  const server = new ModelServer(o),
    ask = <T>(of: (s: AbortSignal) => Promise<T>): Promise<T | undefined> =>
      orUndefined(withDeadline(PATIENCE_MS, [signal], of), 'what it does not say is not known');
  const [version, cards] = await Promise.all([ask((s) => server.version(s)), ask((s) => server.cards(s))]),
    card = cards?.find((c) => c['id'] === model) ?? cards?.[0];
  return { url: o.url, ...factsIn(version, card) };
}

/** `version`: the page of that name; `card`: the model's entry in the list of models. */
export function factsIn(version: unknown, card: unknown): Omit<ServerFacts, 'url'> {
  const said = isObject(version) ? version : {},
    { owned_by: owner, max_model_len: context } = isObject(card) ? card : {};
  const name = textOf(said['name']) ?? textOf(owner),
    number = textOf(said['version']),
    server = [name, number, ...packagesOf(said['packages'])].filter((x) => x !== undefined).join(' '),
    dtype = textOf(said['dtype']),
    chatTemplate = /^[0-9a-f]{64}$/.exec(textOf(said['chat_template_sha256']) ?? '')?.[0],
    imageProcessor = settingsOf(said['image_processor']);
  return {
    ...(number === undefined ? {} : { server }),
    ...(dtype === undefined ? {} : { dtype }),
    ...(chatTemplate === undefined ? {} : { chatTemplate }),
    ...(imageProcessor === undefined ? {} : { imageProcessor }),
    ...(Number.isSafeInteger(context) ? { context: context as number } : {}),
  };
}
const textOf = (v: unknown): string | undefined =>
  typeof v === 'string' && v !== '' && v.length <= MOST_TEXT ? v : undefined;
const packagesOf = (v: unknown): string[] =>
  isObject(v)
    ? Object.entries(v)
        .slice(0, MOST_SETTINGS)
        .flatMap(([name, number]) => (textOf(number) === undefined ? [] : [`${name} ${String(number)}`]))
    : [];
function settingsOf(v: unknown): ServerFacts['imageProcessor'] {
  if (!isObject(v)) return undefined;
  const kept = Object.entries(v)
    .slice(0, MOST_SETTINGS)
    .filter(
      ([name, x]) =>
        name.length <= MOST_TEXT &&
        (typeof x === 'boolean' || Number.isFinite(x) || (typeof x === 'string' && x.length <= MOST_TEXT)),
    );
  return Object.fromEntries(kept) as ServerFacts['imageProcessor'];
}
