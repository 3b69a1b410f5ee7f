import type { ProviderKind } from './provider.js';
import type { PolicyVersion } from './ids.js';
import type { RunPath } from './run.js';

export type DesktopWork =
  | 'starting'
  | 'idle'
  | 'resetting'
  | 'setup'
  | 'observe'
  | 'decide'
  | 'act'
  | 'settle'
  | 'verify'
  | 'broken'
  | 'stopped';

export interface DesktopRow {
  readonly desktop: string;
  readonly run: RunPath;
  readonly provider: ProviderKind;
  readonly state: DesktopWork;
  readonly since: number;
  readonly resets: number;
  readonly replaced: number;
  readonly rollout?: string;
  readonly task?: string;
  readonly instruction?: string;
  readonly step?: number;
  readonly cap?: number;
  readonly version?: PolicyVersion;
}
