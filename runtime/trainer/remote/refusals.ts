import { deferred } from '../../concurrency/deferred.js';
import { ignoreFailure } from '../../concurrency/failures.js';
import { pauseOrStop } from '../../concurrency/pause.js';
import { StudioError, random, toRunError, type RolloutId, type RunError } from '../../domain/index.js';
import type { Prepared } from './datums.js';
import type { TokenSample } from './sample.js';
import { targetsOf, type Datum, type ForwardBackwardOutput, type ForwardBackwardRequest } from './wire/index.js';

/** Passes that a server does not do because of what they carry: too much at once, or a sample that it does not take. */

/** More than the server can do at once: of memory, or of bytes in a request. */
export class TooMuch extends StudioError {
  /** Most targets of the requests to try next; absent where nothing can be divided. */
  readonly targets: number | undefined;
  constructor({ kind, message, remedy }: RunError, targets?: number) {
    super(kind, message, remedy);
    this.targets = targets;
  }
  /** The same of a request with these datums. */
  of(data: readonly Datum[]): TooMuch {
    if (data.length < 2) return this;
    const carried = data.reduce((n, d) => n + targetsOf(d), 0);
    return new TooMuch(this.error, Math.max(1, Math.floor(carried / 2)));
  }
}

type Pass = Pick<ForwardBackwardRequest, 'lossFn' | 'lossFnConfig' | 'forwardOnly'>;

/** Requests that the server refuses for what is in them, in its words about the first. */
export class RefusedData extends StudioError {
  /** All datums of these requests. */
  readonly data: readonly Datum[];
  /** Datums of the pass of which it is not known: they were not submitted, or not done in time. */
  readonly others: readonly Datum[];
  /** The server took other requests of the pass. */
  readonly taken: boolean;
  readonly pass: Pass;
  constructor(first: StudioError, o: Pick<RefusedData, 'data' | 'others' | 'taken' | 'pass'>) {
    super(first.kind, first.message, first.error.remedy, { cause: first });
    this.data = o.data;
    this.others = o.others;
    this.taken = o.taken;
    this.pass = o.pass;
  }
}
export const isRefusal = (e: unknown): e is StudioError => e instanceof StudioError && e.kind === 'trainer.invalid';

/** A request on its way: its promise says that the server has it, the one within what came of it. */
export type Call = Promise<{ readonly result: Promise<ForwardBackwardOutput> }>;

/** The requests of one pass: submitted one after the other, and waited for together. */
export class Requests {
  readonly #all: readonly Datum[];
  readonly #pass: Pass;
  readonly #othersMs: number;
  /** Datums that were taken or refused. */
  readonly #known = new Set<Datum>();
  readonly #done: ForwardBackwardOutput[] = [];
  readonly #refused: { readonly error: StudioError; readonly data: readonly Datum[] }[] = [];
  /** The first failure that is no refusal. */
  #failure: { readonly error: unknown } | undefined;
  readonly #pending = new Set<Promise<void>>();
  #sent = 0;
  /** Settles when a request fails in any way. */
  readonly #spoilt = deferred<void>();

  /** `all` is what they carry together; `othersMs` as of `CallOptions`. */
  constructor(all: readonly Datum[], pass: Pass, othersMs: number) {
    this.#all = all;
    this.#pass = pass;
    this.#othersMs = othersMs;
  }

  /** Waits until the server has the request. False: one has failed, so nothing more is to be submitted. */
  async submitted(data: readonly Datum[], call: Call): Promise<boolean> {
    const result = call.then((s) => s.result);
    ignoreFailure(result, '`outputs` tells of it, or of the request that was refused before it');
    const answered = call.then(
      () => 'taken' as const,
      () => 'failed' as const,
    );
    // After a refusal a server may not take the number of this one, however long it is asked to.
    const how = await Promise.race([answered, this.#spoilt.promise.then(() => 'late' as const)]);
    if (how !== 'late') this.#await(data, result);
    return how === 'taken' && !this.#spoilt.settled;
  }
  #await(data: readonly Datum[], result: Promise<ForwardBackwardOutput>): void {
    const at = this.#sent++;
    const known = (): void => {
      for (const d of data) this.#known.add(d);
    };
    const ended: Promise<void> = result
      .then(
        (out) => {
          this.#done[at] = out;
          known();
        },
        (e: unknown) => {
          if (isRefusal(e)) {
            this.#refused.push({ error: e, data });
            known();
          } else this.#failure ??= { error: e instanceof TooMuch ? e.of(data) : e };
          this.#spoilt.resolve();
        },
      )
      .finally(() => {
        this.#pending.delete(ended);
      });
    this.#pending.add(ended);
  }

  /** Their results, in order. After a refusal the others are waited for, so that the error has all that is refused. */
  async outputs(): Promise<ForwardBackwardOutput[]> {
    await Promise.race([Promise.all(this.#pending), this.#spoilt.promise]);
    if (this.#refused.length === 0 && this.#failure) throw this.#failure.error;
    if (this.#refused.length > 0) await this.#othersEnd();
    const [first] = this.#refused;
    if (!first) return this.#done;
    throw new RefusedData(first.error, {
      data: this.#refused.flatMap((r) => r.data),
      others: this.#all.filter((d) => !this.#known.has(d)),
      taken: this.#done.length > 0,
      pass: this.#pass,
    });
  }
  /** Waits while one after the other ends: a server may hold those behind the refused one for ever. */
  async #othersEnd(): Promise<void> {
    while (this.#pending.size > 0) {
      const stop = new AbortController();
      const more = await Promise.race([
        Promise.race(this.#pending).then(() => true),
        pauseOrStop(this.#othersMs, stop.signal).then(() => false),
      ]);
      stop.abort();
      if (!more) return;
    }
  }
}

/** Passes that are made to find what is to blame: 13 find one datum of a thousand, the others look for more. */
const MOST_TRIES = 24;
/** Rollouts that are asked about alone where the server has taken nothing yet. */
const WITNESSES = 4;

export interface Trial {
  /** Makes the pass over some of its datums, on a model without a past: whether the server takes them. */
  readonly takes: (some: readonly Datum[]) => Promise<boolean>;
  /** Whether the search is to end. */
  readonly enough: () => boolean;
}

/** Looks for datums that are refused alone, as many as are found in `MOST_TRIES`. */
class Search {
  readonly found: Datum[] = [];
  /** The server took some. */
  taken: boolean;
  readonly #trial: Trial;
  readonly #rolloutOf: (d: Datum) => RolloutId | undefined;
  #left = MOST_TRIES;
  constructor(taken: boolean, trial: Trial, rolloutOf: (d: Datum) => RolloutId | undefined) {
    this.taken = taken;
    this.#trial = trial;
    this.#rolloutOf = rolloutOf;
  }
  get over(): boolean {
    return this.#left <= 0;
  }
  /** True also where it cannot be said any more: nobody is blamed without having been seen to be refused. */
  async takes(some: readonly Datum[]): Promise<boolean> {
    if (this.#trial.enough()) this.#left = 0;
    if (this.over) return true;
    this.#left--;
    try {
      const taken = await this.#trial.takes(some);
      this.taken ||= taken;
      return taken;
    } catch (e) {
      if (toRunError(e).kind === 'cancelled') throw e;
      // A server that fails now has refused them all the same, and that is what there is to be told.
      this.#left = 0;
      return true;
    }
  }
  /** Whether several rollouts, drawn by lot, are refused alone: then it is no fault of theirs. */
  async refusesAll(data: readonly Datum[]): Promise<boolean> {
    const one = [...new Map(data.map((d) => [this.#rolloutOf(d), d])).values()];
    if (one.length < 2) return false;
    for (const d of random('refusals').shuffle(one).slice(0, WITNESSES)) if (await this.takes([d])) return false;
    return true;
  }
  /** `known`: they were refused together. Otherwise that is to be seen: perhaps nothing is refused but the whole. */
  async within(some: readonly Datum[], known: boolean): Promise<void> {
    if (some.length === 1) {
      if (known || !(await this.takes(some))) this.found.push(some[0]!);
      return;
    }
    if (this.over) return;
    const half = some.length >> 1,
      front = some.slice(0, half),
      back = some.slice(half);
    if (await this.takes(front)) return this.within(back, false);
    await this.within(front, true);
    await this.among(back);
  }
  /** Of a rollout that was found there is nothing more to be known. */
  async among(some: readonly Datum[]): Promise<void> {
    const found = new Set(this.found.map(this.#rolloutOf)),
      rest = some.filter((d) => !found.has(this.#rolloutOf(d)));
    if (rest.length > 0 && !(await this.takes(rest))) await this.within(rest, true);
  }
}

/**
 * The error of a batch with samples that the server does not take. It names them, and in its details are their rollouts
 * (`untrainable`), so that the others can be trained without them, and whether the server took others (`theirs`). Where
 * none is refused alone, or all are, it is `e` as it is. Undefined: a model without a past takes what was refused, so
 * it was for the state of its model.
 */
export async function blamed(
  e: RefusedData,
  samples: readonly Prepared[],
  trial: Trial,
): Promise<StudioError | undefined> {
  // Each part of a sample has targets of its own, which its datums share.
  const parts = samples.flatMap((s) => s.parts.map((p) => [p.targets, s.sample] as const)),
    owners = new Map<unknown, TokenSample>(parts),
    sampleOf = (d: Datum): TokenSample | undefined => owners.get(d.inputs['target_tokens']?.data),
    search = new Search(e.taken, trial, (d) => sampleOf(d)?.rollout);
  if (await search.takes(e.data)) return search.over ? e : undefined;
  if (!search.taken && (await search.refusesAll([...e.data, ...e.others]))) return e;
  await search.within(e.data, true);
  await search.among(e.others);
  const found = new Set(search.found.map(sampleOf)),
    guilty = samples.map((s) => s.sample).filter((s) => found.has(s)),
    [first] = guilty;
  if (!first) return e;
  const { kind, message, remedy } = e.error,
    more = guilty.length > 1 ? ` and ${guilty.length - 1} more` : '',
    details = { untrainable: [...new Set(guilty.map((s) => s.rollout))], theirs: search.taken };
  return new StudioError(
    kind,
    `Step ${first.step} of rollout ${first.rollout}${more} cannot be trained. ${message}`,
    remedy,
    { cause: e.cause, details },
  );
}
