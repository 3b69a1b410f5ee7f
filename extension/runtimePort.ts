/** The part of the runtime's client that panels and views use; narrow, so that they can be tested without one. */
import type { DaemonClient } from './daemon/client.js';

export type Runtime = Pick<
  DaemonClient,
  'state' | 'stateDetail' | 'onState' | 'on' | 'request' | 'call' | 'subscribe' | 'watch' | 'hello' | 'remote'
>;
