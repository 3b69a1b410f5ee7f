/**
 * Role `__replica`: one copy of the embedded policy in its own process. Requests are answered one at a time in the
 * order they arrive. The process exits when asked to close or when the daemon is gone; the session is released first,
 * because exiting in the middle of a run aborts the process (runtime/policy/README.md#replica-processes).
 */
import { toRunError, type EmbeddedPolicySpec, internalError } from '../../domain/index.js';
import { BEAT_MS } from '../../concurrency/pulse.js';
import { placeOfText } from './codec.js';
import type { GraphSession } from './graphSession.js';
import { openGraph } from './graphSession.js';
import type { FromReplica, ToReplica } from './replicaWire.js';
import { makeSampler } from './sampling.js';

/** Resolves when the replica has closed and nothing keeps the process alive. */
export function runReplicaProcess(): Promise<void> {
  return new Promise((ended) => {
    const replica = new ReplicaServer(ended);
    setInterval(() => send({ type: 'alive' }), BEAT_MS).unref();
    process.on('message', (m: ToReplica) => replica.enqueue(m));
    process.on('disconnect', () => replica.closeAfterQueue());
    // Ctrl-C reaches the whole process group; the daemon decides when its replicas end.
    process.on('SIGINT', () => undefined);
  });
}

/** The parts that an opened replica answers with. */
interface Opened {
  readonly spec: EmbeddedPolicySpec;
  readonly graph: GraphSession;
  readonly sampler: ReturnType<typeof makeSampler>;
  readonly top: number;
  readonly topPlaces: number;
}

class ReplicaServer {
  readonly #ended: () => void;
  #opened: Opened | undefined;
  #version = 0;
  #closing = false;
  #queue: Promise<void> = Promise.resolve();

  constructor(ended: () => void) {
    this.#ended = ended;
  }

  enqueue(m: ToReplica): void {
    this.#queue = this.#queue.then(async () => {
      if (this.#closing) return;
      try {
        await this.#handle(m);
      } catch (e) {
        send({ type: 'error', call: 'call' in m ? m.call : undefined, error: toRunError(e) });
        if (m.type === 'open') await this.#close();
      }
    });
  }

  closeAfterQueue(): void {
    this.#queue = this.#queue.then(() => this.#close());
  }

  async #handle(m: ToReplica): Promise<void> {
    switch (m.type) {
      case 'open': {
        const sampler = makeSampler(m.spec);
        const graph = await openGraph(m.spec, m.graph, m.weights);
        this.#opened = { spec: m.spec, graph, sampler, top: m.top, topPlaces: m.topPlaces };
        this.#version = m.weights.version;
        return send({ type: 'ready' });
      }
      case 'decide': {
        const { spec, graph, sampler, top, topPlaces } = this.#open();
        const t0 = performance.now();
        const sampled = sampler(await graph.run(m.request.state), { ...m.request, top, topPlaces });
        const from = placeOfText(spec, sampled.choices),
          read = from === undefined ? {} : { read: graph.textAt(from) };
        const answer = { ...sampled, ...read, version: this.#version, computeMs: performance.now() - t0 };
        return send({ type: 'answer', call: m.call, answer });
      }
      case 'swap':
        await this.#open().graph.load(m.weights);
        this.#version = m.weights.version;
        return send({ type: 'swapped', call: m.call });
      case 'close':
        return this.#close();
    }
  }

  #open(): Opened {
    if (!this.#opened) throw internalError('A replica was asked before it was opened.');
    return this.#opened;
  }

  async #close(): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    await this.#opened?.graph.release();
    if (process.connected) process.disconnect();
    this.#ended();
  }
}

function send(m: FromReplica): void {
  if (process.connected) process.send!(m);
}
