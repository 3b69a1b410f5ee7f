/** What panels and views need of the runtime's client; narrow, so that they can be tested without one. */
import type { DaemonClient } from './daemon/client.js';

export type Runtime = Pick<
  DaemonClient,
  'state' | 'stateDetail' | 'onState' | 'on' | 'request' | 'call' | 'subscribe' | 'watch' | 'hello' | 'remote'
>;
