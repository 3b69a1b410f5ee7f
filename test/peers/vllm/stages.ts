import { toRunError, type ReplicaId, type Trajectory } from '../../../runtime/domain/index.js';
import { ModelServer } from '../../../runtime/policy/remote/modelServer.js';
import type { ModelPoolEvent } from '../../../runtime/rollout/types.js';
import type { Snapshot } from '../../../runtime/run/backends/types.js';
import type { Acting } from './acting.js';
import type { Clients } from './clients.js';
import { DAMAGE } from './damage.js';
import { episode, type BoxScreen, type Frames } from './episodes.js';
import { compareRecords, type RecordFigures } from './records.js';
import { isCompletion, isDecision, isProof, type Exchange, type Wire } from './wire.js';

/** What is tried, one stage after another; each answers with its figures. */

export interface Stage {
  readonly acting: Acting;
  readonly wires: readonly Wire[];
  readonly screens: readonly BoxScreen[];
  readonly frames: Frames;
  readonly imageToken: number;
  readonly signal: AbortSignal;
  readonly say: (text: string) => void;
}

/** Episodes one at a time, their records held against what went over the wire. */
export async function recordStage(
  s: Stage,
  episodes: number,
): Promise<{ readonly figures: RecordFigures; readonly trajectories: readonly Trajectory[] }> {
  const trajectories: Trajectory[] = [],
    parts: RecordFigures[] = [];
  for (let n = 0; n < episodes; n++) {
    const from = s.wires.map((w) => w.exchanges.length),
      shown = Array.from({ length: 4 }, (_, i) => s.screens[(n + i) % s.screens.length]!),
      onCall = (): (() => void) => () => undefined,
      t = await episode(s.acting.backend.policy, `record-${n}`, shown, s.frames, { signal: s.signal, onCall });
    trajectories.push(t);
    const told = s.wires.flatMap((w, i) => w.exchanges.slice(from[i]));
    parts.push(compareRecords(t, told, s.imageToken));
  }
  const figures = parts.reduce((a, b) => {
    const sum = Object.fromEntries(Object.entries(a).map(([k, v]) => [k, v + b[k as keyof RecordFigures]]));
    const most = Math.max(a.most_images_in_a_prompt, b.most_images_in_a_prompt);
    return { ...(sum as unknown as RecordFigures), most_images_in_a_prompt: most };
  });
  return { figures, trajectories };
}

/** The first token's log-probs with one picture, with it again, and with another. */
export async function imageStage(
  url: string,
  model: string,
  [one, other]: readonly BoxScreen[],
  signal: AbortSignal,
): Promise<{ readonly same_image: number; readonly other_image: number }> {
  const server = new ModelServer({ url: `${url}/v1` });
  const seen = async ({ frame }: BoxScreen): Promise<Map<string, number>> => {
    const image_url = { url: `data:image/png;base64,${frame.png.toString('base64')}` },
      messages = [{ role: 'user', content: [{ type: 'image_url', image_url }] }],
      ask = { model, messages, max_tokens: 1, temperature: 0, logprobs: true, top_logprobs: 20 },
      c = await server.complete(ask, signal);
    return new Map(c.choices![0]!.logprobs!.content![0]!.top_logprobs!.map((t) => [t.token!, t.logprob!]));
  };
  const far = (a: Map<string, number>, b: Map<string, number>): number =>
    [...a].reduce((most, [token, x]) => Math.max(most, Math.abs(x - (b.get(token) ?? x))), 0);
  const first = await seen(one!),
    otherwise = await seen(other!);
  return { same_image: far(first, await seen(one!)), other_image: far(first, otherwise) };
}

interface Window {
  readonly began: number;
  readonly ended: number;
}
const within = (w: readonly Window[], began: number, ended = began): boolean =>
  w.some((p) => began <= p.ended && ended >= p.began);

export interface PublishFigures {
  readonly publishes: number;
  readonly calls: number;
  readonly calls_during_publish: number;
  readonly failed_calls: number;
  readonly failed_calls_during_publish: number;
  /** Answers of a version that no server gave any more when they were asked for. */
  readonly outdated_answers: number;
  readonly capacity_during_publish: number;
  readonly calls_per_second: { readonly during_publish: number; readonly between: number };
  readonly publish_ms: { readonly median: number; readonly most: number };
  readonly failures: readonly string[];
}

/** Each publish is of weights that were trained on what the clients had just done. */
export async function publishStage(s: Stage, clients: Clients, publishes: number): Promise<PublishFigures> {
  const windows: Window[] = [],
    capacity = new Capacity(s.acting),
    from = { calls: clients.calls.length, failures: clients.failures.length },
    start = performance.now();
  for (let n = 1; n <= publishes; n++) {
    const snapshot = await s.acting.train((await clients.next(6)).slice(0, 8)),
      began = performance.now();
    capacity.watch(true);
    await snapshot.publish();
    capacity.watch(false);
    windows.push({ began, ended: performance.now() });
    s.say(`Published version ${snapshot.version}, ${n} of ${publishes}.`);
  }
  await clients.next(6);
  capacity.close();
  const all = performance.now() - start,
    calls = clients.calls.slice(from.calls),
    failures = clients.failures.slice(from.failures),
    during = calls.filter((c) => within(windows, c.began, c.ended)),
    ms = windows.map((w) => w.ended - w.began).sort((a, b) => a - b),
    publishing = ms.reduce((a, b) => a + b, 0),
    finished = calls.filter((c) => within(windows, c.ended)).length;
  return {
    publishes,
    calls: calls.length,
    calls_during_publish: during.length,
    failed_calls: failures.length,
    failed_calls_during_publish: failures.filter((f) => within(windows, f.at)).length,
    outdated_answers: calls.filter((c) => c.version === undefined || c.version < c.oldest).length,
    capacity_during_publish: capacity.least,
    calls_per_second: {
      during_publish: (1000 * finished) / publishing,
      between: (1000 * (calls.length - finished)) / (all - publishing),
    },
    publish_ms: { median: ms[ms.length >> 1]!, most: ms.at(-1)! },
    failures: [...new Set(failures.map((f) => f.why))].slice(0, 5),
  };
}

/** The least share of the servers that took calls while versions were published. */
class Capacity {
  least = 1;
  readonly #out = new Set<ReplicaId>();
  readonly #servers: number;
  readonly #off: () => void;
  #watching = false;
  constructor({ replicas }: Acting) {
    this.#servers = replicas.status().replicas.length;
    this.#off = replicas.onEvent((e: ModelPoolEvent) => {
      if (e.type !== 'phase') return;
      if (e.phase === 'admitting') this.#out.delete(e.replica);
      else this.#out.add(e.replica);
      this.#note();
    });
  }
  watch(on: boolean): void {
    this.#watching = on;
    this.#note();
  }
  close(): void {
    this.#off();
  }
  #note(): void {
    if (this.#watching) this.least = Math.min(this.least, 1 - this.#out.size / this.#servers);
  }
}

export interface Refusal {
  readonly damage: string;
  /** A server refused it, and none answered with the new version before it was published again. */
  readonly found: boolean;
  /** Until then no server had the adapter any more, and the version before answered. */
  readonly rolled_back: boolean;
  /** The same weights as new files were taken, and answer. */
  readonly published_again: boolean;
  readonly failed_calls: number;
  readonly lost_replicas: number;
  readonly said: string;
  readonly ms: number;
}

/** Adapters that are damaged between their saving and their publishing, while clients act. */
export async function damageStage(s: Stage, clients: Clients): Promise<Refusal[]> {
  const refusals: Refusal[] = [];
  for (const [damage, change] of Object.entries(DAMAGE)) {
    const snapshot = await s.acting.train((await clients.next(6)).slice(0, 8)),
      failed = clients.failures.length;
    let lost = 0;
    const off = s.acting.replicas.onEvent((e) => (lost += e.type === 'lost' ? 1 : 0));
    await change(await s.acting.adapterFolder(snapshot.version));
    const { refusal, ...figures } = await publishDamaged(s, clients, snapshot);
    off();
    refusals.push({
      damage,
      ...figures,
      failed_calls: clients.failures.length - failed,
      lost_replicas: lost,
      said: refusal?.slice(0, 240) ?? 'published',
    });
    s.say(`${damage}: ${refusal === undefined ? 'published' : 'refused'}`);
  }
  return refusals;
}
async function publishDamaged(
  { acting, wires }: Stage,
  clients: Clients,
  snapshot: Snapshot,
): Promise<
  Pick<Refusal, 'found' | 'rolled_back' | 'published_again' | 'ms'> & { readonly refusal: string | undefined }
> {
  const before = acting.replicas.oldest,
    began = performance.now();
  let off = (): void => undefined;
  const refused = new Promise<string>((resolve) => {
      off = acting.onNote((text) => {
        const [, why] = / was refused by a model server .* the version before\. (.*)/.exec(text) ?? [];
        if (why !== undefined) resolve(why);
      });
    }),
    published = snapshot.publish().then(
      () => undefined,
      (e: unknown) => toRunError(e).message,
    ),
    refusal = await Promise.race([refused, published]),
    ms = Math.round(performance.now() - began),
    meanwhile = await clients.callsSince(performance.now(), 20),
    name = new RegExp(`@v${snapshot.version}$`),
    held = wires.some((w) => w.loaded().some((n) => name.test(n))),
    failure = await published,
    after = await clients.callsSince(performance.now(), 20);
  off();
  return {
    refusal,
    ms,
    found: refusal !== undefined && meanwhile.every((c) => c.version !== snapshot.version),
    rolled_back: !held && meanwhile.length > 0 && meanwhile.every((c) => c.version === before),
    published_again: failure === undefined && after.length > 0 && after.every((c) => c.version === snapshot.version),
  };
}

export interface WireFigures {
  readonly adapters_loaded: number;
  /** Of them, loaded anew from other files after what was there under their name had been refused. */
  readonly loaded_again: number;
  /** Loaded under a name that had answered a call before. */
  readonly names_used_twice: number;
  readonly paths_used_twice: number;
  readonly used_before_their_proof: number;
  readonly unloads: number;
  readonly unloads_with_calls_in_flight: number;
  readonly unloads_after_their_files: number;
  readonly decisions_refused: number;
  /** Their statuses, 0 where the connection ended, and how their answers begin. */
  readonly refusals: readonly string[];
}
/** How adapters were handled, as the servers saw it. */
export function wireFigures(wires: readonly Wire[]): WireFigures {
  const refused = wires.flatMap((w) => w.exchanges).filter((e) => isDecision(e) && e.status !== 200),
    unloads = wires.flatMap((w) => w.unloads),
    loads = wires.map((w) => w.exchanges.filter((e) => e.path.endsWith('/load_lora_adapter') && e.status === 200));
  const twice = (of: (string | undefined)[]): number => of.length - new Set(of).size;
  return {
    adapters_loaded: loads.flat().length,
    loaded_again: loads.reduce((n, l) => n + twice(l.map((e) => e.asked.lora_name)), 0),
    names_used_twice: wires.reduce((n, w, i) => n + loads[i]!.filter((e) => hasActed(w, e)).length, 0),
    paths_used_twice: loads.reduce((n, l) => n + twice(l.map((e) => e.asked.lora_path)), 0),
    used_before_their_proof: wires.reduce(
      (n, w, i) => n + loads[i]!.filter((e) => !isProven(w, e.asked.lora_name!)).length,
      0,
    ),
    unloads: unloads.length,
    unloads_with_calls_in_flight: unloads.filter((u) => u.inFlight > 0).length,
    unloads_after_their_files: unloads.filter((u) => !u.files).length,
    decisions_refused: refused.length,
    refusals: [...new Set(refused.map((e) => `${e.status} ${e.answer.slice(0, 200)}`))].slice(0, 5),
  };
}
/** Whether a call was answered under the name of an adapter before this load of it. */
const hasActed = (wire: Wire, load: Exchange): boolean =>
  wire.exchanges.some((e) => isDecision(e) && e.asked.model === load.asked.lora_name && e.began < load.began);
/** The first thing that an adapter was asked for is its proof, and no other call began before its answer. */
function isProven(wire: Wire, name: string): boolean {
  const of = wire.exchanges.filter((e) => isCompletion(e) && e.asked.model === name).sort((a, b) => a.began - b.began),
    [first, second] = of;
  return first !== undefined && isProof(first) && (second === undefined || second.began >= first.ended);
}
