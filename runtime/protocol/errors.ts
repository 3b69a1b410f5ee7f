import type { RunError } from '../domain/index.js';

/** Besides domain/errors.ts: what only a daemon can say. */
export type DaemonErrorKind =
  'protocol.mismatch' | 'params.invalid' | 'not.found' | 'busy' | 'draining' | 'connection.lost';
export interface ErrorData {
  readonly kind: RunError['kind'] | DaemonErrorKind;
  readonly remedy: string;
}
