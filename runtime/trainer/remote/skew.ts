/**
 * Servers of another age than ours: an error that arises as between versions is told with what the server says it is,
 * what is spoken here, and what to do.
 */
import { StudioError } from '../../domain/index.js';
import { isObject, jsonOrNothing } from '../../foreign/json.js';
import { orUndefined } from '../../concurrency/failures.js';
import type { JsonBounds } from '../../foreign/jsonBounds.js';
import type { TrainingHttp } from './http.js';
import { Unread } from './wire/index.js';

/** A refusal that tells of another version: no such call, a body or a client that it does not take. */
export class Skewed extends StudioError {}

/** The protocol that this client speaks, for people. */
export const PROTOCOL = 'the Tinker protocol as its SDK 0.25 to 0.38 speaks it, and the JSON passes of older servers';
const REMEDY =
  "Update the older of the two, DART Studio or the server (this project's engine: the one of this version, `engine serve`), or use a server and version that it was tried with (runtime/config/README.md#what-was-proven-against-which-server).";

const TIMEOUT_MS = 5000,
  MOST_BYTES = 4 << 20,
  MOST_TEXT = 120,
  PAGE: JsonBounds = { depth: 64, values: 1 << 18 };

/** Which server it is and its version, by its /version or the description of its calls; undefined where it says neither. */
export async function identityOf(http: TrainingHttp): Promise<string | undefined> {
  const { name, version } = await page(http, 'version'),
    own = wordsOf(name, version);
  if (own !== undefined) return own;
  const { info } = await page(http, 'openapi.json');
  return isObject(info) ? wordsOf(info['title'], info['version']) : undefined;
}
/** Whether it says that it has no such call; false where it does not describe its calls. */
export async function lacks(http: TrainingHttp, path: string): Promise<boolean> {
  const { paths } = await page(http, 'openapi.json');
  if (!isObject(paths)) return false;
  const has = (call: string): boolean => Object.keys(paths).some((p) => p.endsWith(`/${call}`));
  // A gateway describes its own calls.
  return has('create_session') && !has(path);
}
async function page(http: TrainingHttp, path: string): Promise<Readonly<Record<string, unknown>>> {
  const asked = http.send(
      { path, beside: true, timeoutMs: TIMEOUT_MS, most: MOST_BYTES },
      new AbortController().signal,
    ),
    r = await orUndefined(asked, 'then it does not say what it is');
  const said =
    r?.kind === 'answer' && r.status === 200 ? jsonOrNothing(Buffer.from(r.bytes).toString('utf8'), PAGE) : undefined;
  return isObject(said) ? said : {};
}
function wordsOf(name: unknown, version: unknown): string | undefined {
  if (typeof version !== 'string') return undefined;
  return [name, version]
    .flatMap((x) => (typeof x === 'string' ? [x] : []))
    .join(' ')
    .slice(0, MOST_TEXT);
}

/** The server's identity, in a sentence. */
export const identityWords = (who: string | undefined): string =>
  who === undefined ? 'The server does not say what it is' : `The server says that it is ${who}`;

/** The error to throw: `e`, or what it means where it arose as between versions. `told`: the server's words on opening a session. */
export async function explained(e: unknown, http: TrainingHttp, told?: string | null): Promise<unknown> {
  if (!(e instanceof Skewed || e instanceof Unread)) return e;
  const { kind, message, details } = e.error,
    heard = told ? ` When the session was opened it said: ${told.slice(0, 500)}` : '',
    who = identityWords(await identityOf(http));
  return new StudioError(kind, `${message}${heard} ${who}; DART Studio speaks ${PROTOCOL}.`, REMEDY, {
    ...(details ? { details } : {}),
    cause: e,
  });
}
