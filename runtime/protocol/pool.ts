/** Wire types of the experience pool and of import and export. */
import type { PolicyVersion, RunPath } from '../domain/index.js';

export type PoolSource = 'human' | 'imported' | 'oracle' | 'rollout' | 'hindsight';
export interface PoolEntryRow {
  readonly rollout: string;
  readonly task: string;
  readonly steps: number;
  readonly source: PoolSource;
  /** Import: from what. Relabelled: what was asked for when it was rolled out. */
  readonly from?: string;
  /** Relabelled: what it is a success of. */
  readonly instruction?: string;
  /** Newest version that acted, for the policy's own. */
  readonly version?: PolicyVersion;
  readonly addedAt?: number;
  readonly uses: number;
  readonly enabled: boolean;
  /** Whether the next all-failed group could get it, and why not; `imitated`: it is imitated alone. */
  readonly usable: boolean;
  readonly why?: 'off' | 'imitated' | 'used up' | 'aged';
  /** Why it joined without the verifier's word. */
  readonly override?: string;
}
export interface PoolFamily {
  readonly family: string;
  readonly title?: string;
  readonly entries: readonly PoolEntryRow[];
  readonly successes: number;
  /** Fewest steps. */
  readonly shortest?: number;
  readonly newest?: number;
  readonly uses: number;
  /** Success rate of training rollouts; absent before there was any. */
  readonly rate?: number;
  readonly rollouts: number;
  /** Rolled out, and no rollout of the policy ever succeeded. */
  readonly neverSolved: boolean;
}
export interface PoolView {
  readonly families: readonly PoolFamily[];
  readonly entries: number;
  readonly injections: number;
  /** Never-solved families, and how many of them the pool covers. */
  readonly neverSolved: number;
  readonly covered: number;
  /** The run is not written by this daemon now: changes open its folder. */
  readonly active: boolean;
}

export type ImportFormatName = 'osworld' | 'agentnet' | 'dart' | 'ui-tars' | 'traj';
export type ExportFormatName = 'osworld' | 'agentnet' | 'dart' | 'openai' | 'traj';
export interface ImportOptions {
  /** Folder of OSWorld task files. */
  readonly tasks?: string;
  /** Verdict where the format has none. */
  readonly verdict?: 'success' | 'failure';
  readonly coordinates?: 'qwen25' | 'relative1000' | 'relative999' | 'relative1' | 'absolute';
}
export interface ImportProblem {
  readonly where: string;
  readonly what: string;
  readonly remedy?: string;
}
export interface ImportPreview {
  readonly path: string;
  readonly formats: Readonly<Partial<Record<ImportFormatName, number>>>;
  readonly trajectories: number;
  readonly steps: number;
  readonly successes: number;
  readonly failures: number;
  readonly tasks: number;
  readonly already: number;
  readonly problems: readonly ImportProblem[];
  readonly problemCount: number;
  readonly notes: Readonly<Record<string, number>>;
}
export interface ImportResult {
  readonly run: RunPath;
  readonly imported: number;
  readonly successes: number;
  readonly steps: number;
  readonly pooled: number;
  readonly notPooled: Readonly<Record<string, number>>;
  readonly already: number;
  readonly duplicateCount: number;
  readonly problems: readonly ImportProblem[];
  readonly problemCount: number;
  readonly notes: Readonly<Record<string, number>>;
  readonly stopped: boolean;
}
export interface InterchangeProgress {
  readonly done: number;
  readonly of: number;
  readonly imported?: number;
  readonly problems?: number;
}
export interface ExportResult {
  readonly to: string;
  readonly trajectories: number;
  readonly steps: number;
  readonly parts: Readonly<Record<string, number>>;
  readonly problems: readonly ImportProblem[];
  /** What the format has no place for, and of how many trajectories. */
  readonly notes?: Readonly<Record<string, number>>;
}
