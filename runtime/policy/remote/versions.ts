/** Which versions of model servers are spoken to, and what a server says that it is. */
import { StudioError } from '../../domain/index.js';
import { isObject } from '../../foreign/json.js';
import type { Dialect } from './dialect.js';

/** `oldest`: the first that answers `return_token_ids`; `newest`: the last that this was tried with, or written after. */
export const SPOKEN: Readonly<Record<Dialect['server'], { readonly oldest: string; readonly newest: string }>> = {
  vLLM: { oldest: '0.10.2', newest: '0.32.0' },
  SGLang: { oldest: '0.5.17', newest: '0.5.23' },
};
/** vLLM gave Qwen's models adapters of the output layer in 2026 (vllm 33234); 0.32.0 was seen to take them. */
export const HEAD_REMEDY =
  'An adapter with lm_head, as of a run that began while its engine alone acted or with an older DART Studio, needs a newer vLLM (0.32.0 takes it); a new run with these servers trains none.';
const OWNERS: Readonly<Record<string, Dialect['server']>> = { vllm: 'vLLM', sglang: 'SGLang' };

/** A server that says which of the two it is, and its version. */
export interface Dated {
  readonly server: Dialect['server'];
  readonly version: string;
  /** Against the versions that are spoken to; absent where the version is no number. */
  readonly age?: 'older' | 'spoken' | 'newer';
}
/** Built from sources without their tags: the numbers say nothing. */
const UNTAGGED = /^v?0\.[01](\.\d+)?\.?dev/;
const MOST_TEXT = 40;

/** `version`: what it answered to that; `cards`: its list of models. Undefined for others, as our engine. */
export function datedBy(version: unknown, cards: readonly unknown[]): Dated | undefined {
  const owners = cards.map((c) => (isObject(c) ? c['owned_by'] : undefined)),
    owner = owners.find((o): o is string => typeof o === 'string' && Object.hasOwn(OWNERS, o)),
    said = isObject(version) ? version['version'] : undefined;
  if (owner === undefined || typeof said !== 'string') return undefined;
  const server = OWNERS[owner]!,
    { oldest, newest } = SPOKEN[server],
    dated = { server, version: said.slice(0, MOST_TEXT) };
  if (numbers(said) === undefined || UNTAGGED.test(said)) return dated;
  const age = before(said, oldest) ? 'older' : before(newest, said) ? 'newer' : 'spoken';
  return { ...dated, age };
}
/** The three numbers of a version such as `0.10.2rc1` or `v0.5.17.post1`. */
const numbers = (version: string): readonly number[] | undefined =>
  /^v?(\d+)\.(\d+)(?:\.(\d+))?/
    .exec(version)
    ?.slice(1)
    .map((n) => Number(n ?? 0));
function before(a: string, b: string): boolean {
  const x = numbers(a)!,
    y = numbers(b)!,
    i = x.findIndex((n, at) => n !== y[at]);
  return i >= 0 && x[i]! < y[i]!;
}

/** Words about a server of an unsupported version: what it is, what is needed, what to do. */
export function ageWords({ server, version, age }: Dated): { readonly what: string; readonly remedy: string } {
  const { oldest, newest } = SPOKEN[server];
  return age === 'older'
    ? {
        what: `it says that it is ${server} ${version}, and ${oldest} is the first that gives token ids, which training needs`,
        remedy: `Update it to ${server} ${oldest} or newer (pip install -U ${server.toLowerCase()}); ${newest} is the newest that this was made for.`,
      }
    : {
        what: `it says that it is ${server} ${version}, newer than ${newest}, the newest that this was made for`,
        remedy: `Update DART Studio, or use ${server} ${oldest} to ${newest}.`,
      };
}

/** Throws for a server that is too old to train with. */
export function refuseOlder(url: string, dated: Dated | undefined): void {
  if (dated?.age !== 'older') return;
  const { what, remedy } = ageWords(dated);
  throw new StudioError('policy.remote', `${url} cannot act for a run that trains: ${what}.`, remedy);
}
/** An error of a server that is newer than what is spoken says so. */
export function ageingError(e: unknown, dated: Dated | undefined): unknown {
  if (!(e instanceof StudioError) || e.kind !== 'policy.remote' || dated?.age !== 'newer') return e;
  const { what, remedy } = ageWords(dated),
    { message, details } = e.error;
  return new StudioError(
    'policy.remote',
    `${message} The server may be too new: ${what}.`,
    `${e.error.remedy} ${remedy}`,
    {
      ...(details ? { details } : {}),
      cause: e,
    },
  );
}
