/**
 * How many answers a model server works at, from the figures it gives of itself (vLLM's and SGLang's /metrics): as many
 * as the run file allows, fewer while its memory for prompts fills up, since what it has to throw out it computes again.
 */

/** A server's own figures of its load; those it does not give are absent. */
export interface ServerLoad {
  /** Share of the memory for prompts (KV cache) in use. */
  readonly memory?: number | undefined;
  /** Requests that wait for room. */
  readonly waiting?: number | undefined;
  /** Requests that were thrown out for others, since the server began. */
  readonly preemptions?: number | undefined;
}

const NAMES: Readonly<Record<keyof ServerLoad, readonly string[]>> = {
  memory: ['vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc', 'sglang:token_usage'],
  waiting: ['vllm:num_requests_waiting', 'sglang:num_queue_reqs'],
  preemptions: ['vllm:num_preemptions_total', 'sglang:num_retracted_requests_total', 'sglang:num_retracted_reqs_total'],
};

/** Prometheus text; of a figure with several labels (engines of one server) the largest. Undefined where none is there. */
export function loadOf(text: string): ServerLoad | undefined {
  const found: Partial<Record<keyof ServerLoad, number>> = {};
  for (const [key, names] of Object.entries(NAMES) as [keyof ServerLoad, readonly string[]][])
    for (const name of names) for (const x of valuesOf(text, name)) found[key] = Math.max(found[key] ?? -Infinity, x);
  return Object.keys(found).length > 0 ? found : undefined;
}
/** Engines of one server at most: what it says of more is not looked at. */
const MOST_ENGINES = 1024;
/** The values of lines that begin with a name; other lines are passed over without being cut out. */
function valuesOf(text: string, name: string): number[] {
  const out: number[] = [];
  let lines = 0;
  for (let at = text.indexOf(name); at >= 0 && lines < MOST_ENGINES; at = text.indexOf(name, at + name.length)) {
    if (at > 0 && text[at - 1] !== '\n') continue;
    lines++;
    const end = text.indexOf('\n', at),
      rest = text.slice(at + name.length, end < 0 ? undefined : end),
      x = Number(/^(?:\{[^}]*\})?\s+(\S+)/.exec(rest)?.[1]);
    if (Number.isFinite(x)) out.push(x);
  }
  return out;
}

/** Memory from which less is sent, and from which much less; under `room` more is tried. As in prime-rl. */
const MEMORY = { room: 0.6, full: 0.8, brimming: 0.9 },
  FACTOR = { grow: 1.25, trim: 0.9, cut: 0.7, preempted: 0.8 };
/** More calls are tried only when this share of the allowed ones is used. */
const USED = 0.9;

/** A pure state machine that is told figures and asked for a limit. */
export class LoadLimit {
  readonly #most: number;
  #limit: number;
  #preemptions: number | undefined;

  /** `most`: what the run file allows, and where it begins. */
  constructor(most: number) {
    this.#most = most;
    this.#limit = most;
  }
  /** Answers that the server may work at. */
  get now(): number {
    return Math.max(1, Math.floor(this.#limit));
  }

  /** `inFlight`: answers it works at for us. */
  saw(load: ServerLoad, inFlight: number): void {
    const { memory, waiting = 0, preemptions } = load,
      thrownOut = preemptions !== undefined && this.#preemptions !== undefined && preemptions > this.#preemptions;
    this.#preemptions = preemptions ?? this.#preemptions;
    let factor = 1;
    if (thrownOut) factor = FACTOR.preempted;
    if (memory !== undefined && memory > MEMORY.brimming) factor = Math.min(factor, FACTOR.cut);
    else if (memory !== undefined && memory > MEMORY.full) factor = Math.min(factor, FACTOR.trim);
    const quiet = !thrownOut && waiting === 0 && (memory === undefined || memory < MEMORY.room);
    if (factor === 1 && quiet && inFlight >= USED * this.now) factor = FACTOR.grow;
    this.#limit = Math.min(this.#most, Math.max(1, this.#limit * factor));
  }
}
