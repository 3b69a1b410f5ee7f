import type { DecisionPool } from '../types.js';
import type { ChatTransport } from './chatSession.js';
import type { ChatAnswer, ChatCall } from './endpointReplica.js';

/** Sessions on a pool of replicas with our weights. */
export const pooledChat = (pool: DecisionPool<ChatCall, ChatAnswer>): ChatTransport => ({
  async complete(request, o) {
    const { answer, replica, queueMs } = await pool.decide({ ...request, signal: o.signal }, o);
    const { said, version, computeMs } = answer;
    return { said, version, replica, queueMs, computeMs };
  },
  end: (session) => pool.end(session),
});
