/**
 * Role `__replica`: one copy of the embedded policy in a process of its own. Requests are answered one at a time in the
 * order they came. It ends by itself when asked to close or when the daemon is gone; the session is released first,
 * because ending a process in the middle of a run aborts it (runtime/policy/README.md#replica-processes).
 */
import { StudioError, toRunError } from '../../domain/index.js';
import type { GraphSession } from './graphSession.js';
import { openGraph } from './graphSession.js';
import type { FromReplica, ToReplica } from './replicaWire.js';
import { makeSampler } from './sampling.js';

/** Resolves when the replica has closed and nothing keeps the process alive. */
export function runReplicaProcess(): Promise<void> {
  return new Promise((ended) => {
    let graph: GraphSession | undefined;
    let sampler: ReturnType<typeof makeSampler> | undefined;
    let version = 0,
      top = 0,
      topPlaces = 0,
      closing = false;
    let queue: Promise<void> = Promise.resolve();

    const send = (m: FromReplica): void => {
      if (process.connected) process.send!(m);
    };
    const close = async (): Promise<void> => {
      if (closing) return;
      closing = true;
      await graph?.release();
      if (process.connected) process.disconnect();
      ended();
    };
    const handle = async (m: ToReplica): Promise<void> => {
      switch (m.type) {
        case 'open':
          graph = await openGraph(m.spec, m.graph, m.weights);
          sampler = makeSampler(m.spec);
          version = m.weights.version;
          top = m.top;
          topPlaces = m.topPlaces;
          return send({ type: 'ready' });
        case 'decide': {
          if (!graph || !sampler)
            throw new StudioError('internal', 'A replica was asked before it was opened.', 'Please report this.');
          const t0 = performance.now();
          const sampled = sampler(await graph.run(m.request.state), { ...m.request, top, topPlaces });
          return send({
            type: 'answer',
            call: m.call,
            answer: { ...sampled, version, computeMs: performance.now() - t0 },
          });
        }
        case 'swap':
          await graph!.load(m.weights);
          version = m.weights.version;
          return send({ type: 'swapped', call: m.call });
        case 'close':
          return close();
      }
    };
    process.on('message', (m: ToReplica) => {
      queue = queue.then(async () => {
        if (closing) return;
        try {
          await handle(m);
        } catch (e) {
          send({ type: 'error', ...('call' in m ? { call: m.call } : {}), error: toRunError(e) });
          if (m.type === 'open') await close();
        }
      });
    });
    process.on('disconnect', () => {
      queue = queue.then(close);
    });
    // Ctrl-C reaches the whole process group; the daemon decides when its replicas end.
    process.on('SIGINT', () => undefined);
  });
}
