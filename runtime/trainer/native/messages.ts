import type { EmbeddedPolicySpec, EncodedState, RunError, EmbeddedSample, EmbeddedBatch } from '../../domain/index.js';
import type {
  CheckpointRef,
  ImitateOptions,
  ReadingScreen,
  ReadOptions,
  ReadReport,
  UpdateReport,
  WeightsFile,
} from '../types.js';
import type { LearnerProgress } from './learner.js';
import type { TrainerOptions } from './options.js';

/**
 * The messages between client and trainer process. A batch travels in small messages: each unique state once, then the
 * samples that name their state by key, then the command; so that no message blocks either event loop for long.
 */
export type WireSample = Omit<EmbeddedSample, 'state' | 'rollout' | 'step'>;
/** A batch whose samples are sent before it. */
export type WireBatch = Omit<EmbeddedBatch, 'samples'>;
export type Command =
  | {
      readonly kind: 'start';
      readonly spec: EmbeddedPolicySpec;
      readonly options: TrainerOptions;
      readonly dir: string;
      readonly seed: number;
      /** Version of the untaught weights; 0 when absent. */
      readonly version?: number;
    }
  | { readonly kind: 'update'; readonly batch: WireBatch }
  | { readonly kind: 'imitate'; readonly batch: WireBatch; readonly options: ImitateOptions }
  | { readonly kind: 'read'; readonly options: ReadOptions }
  | { readonly kind: 'checkpoint' }
  | { readonly kind: 'export' }
  | { readonly kind: 'close' }
  | { readonly kind: 'restore'; readonly dir: string; readonly version: number };
export type ToTrainer =
  | { readonly kind: 'states'; readonly states: readonly { readonly key: string; readonly state: EncodedState }[] }
  | { readonly kind: 'screens'; readonly screens: readonly ReadingScreen[] }
  | { readonly kind: 'interrupt' }
  | { readonly kind: 'samples'; readonly samples: readonly WireSample[] }
  | { readonly kind: 'command'; readonly id: number; readonly command: Command };
/** The trainer process's answer to each command. */
export interface Replies {
  readonly start: { readonly parameters: number };
  readonly update: UpdateReport;
  readonly imitate: UpdateReport;
  readonly read: ReadReport;
  readonly checkpoint: CheckpointRef;
  readonly export: WeightsFile;
  readonly close: null;
  readonly restore: null;
}
export type Reply = Replies[Command['kind']];
export type FromTrainer =
  /** Every second (`runtime/concurrency/pulse.ts`). */
  | { readonly kind: 'alive' }
  /** A note for the run's log. */
  | { readonly kind: 'note'; readonly text: string }
  | { readonly kind: 'done'; readonly id: number; readonly value: Reply }
  | { readonly kind: 'failed'; readonly id: number; readonly error: RunError }
  | { readonly kind: 'progress'; readonly progress: LearnerProgress };
