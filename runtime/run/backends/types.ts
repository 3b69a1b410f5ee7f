import type { PolicyDeclaration, RunConfig } from '../../config/index.js';
import type { LearnBatch, PolicyVersion, ServedModel, StudioError, Trajectory } from '../../domain/index.js';
import type { ProcessEntry } from '../../concurrency/process.js';
import type { DesktopPool } from '../../cluster/types.js';
import type { FrameStore } from '../../data/types.js';
import type { Policy, SyncReport } from '../../policy/types.js';
import type { ModelPoolEvent, ModelPoolStatus } from '../../rollout/types.js';
import type { Tasks } from '../../tasks/open.js';
import type {
  CheckpointRef,
  ImitateOptions,
  ReadingScreen,
  ReadOptions,
  ReadReport,
  UpdateReport,
} from '../../trainer/types.js';
import type { StartedParts } from './startedParts.js';

/** A kind of policy: what run files say of it, how it is started, and what else is asked of it. */
export interface Backend extends PolicyDeclaration {
  /** Everything of a training run; an evaluation has it too where there is no `act`. */
  readonly start: (r: BackendRequest, parts: StartedParts) => Promise<PolicyBackend>;
  /**
   * Starts only the part that acts with a checkpoint, where that is less than `start` starts. Rejects with
   * `config.invalid` where there is no checkpoint and nothing was learned.
   */
  readonly act?: (r: BackendRequest, parts: StartedParts) => Promise<Policy>;
  /** The model that the run file names; absent where all weights come from runs. */
  readonly model?: (c: RunConfig) => string;
  /** Absent where nothing is trained. */
  readonly writeWeights?: (r: WriteWeightsRequest) => Promise<WrittenWeights>;
  /** Notes for people on how an instruction differs from those that a checkpoint's policy learned from. */
  readonly instructionNotes?: (
    checkpoint: string,
    tasks: Pick<Tasks, 'families' | 'demoSeeds' | 'source'> | undefined,
    instruction: string,
  ) => Promise<readonly string[]>;
}

/** Weights of a checkpoint, to be written as other programs load them. */
export interface WriteWeightsRequest {
  readonly config: RunConfig;
  /** Run folder. */
  readonly run: string;
  /** Folder of the checkpoint. */
  readonly checkpoint: string;
  /** Folder to make. */
  readonly to: string;
  /** A whole model in place of an adapter. */
  readonly merged: boolean;
  /** State folders of engines that the run did not start itself: they keep their weights there. */
  readonly states: readonly string[];
  readonly signal: AbortSignal;
  readonly onLine: (line: string) => void;
}
/** An adapter in PEFT's layout, a whole model folder, or a network for ONNX Runtime. */
export type WrittenWeights = 'adapter' | 'model' | 'onnx';

/**
 * A run's view of the policy it rolls out and trains. How a step becomes numbers or tokens, what weights are and which
 * engine computes with them stays inside: curation, ledger, staleness, planner and publishing are the same for every
 * backend.
 */
export interface PolicyBackend {
  readonly policy: Policy;
  /** The store of the rollouts' screens; a backend may look at them as they pass. */
  readonly frames: FrameStore;
  /** Absent where an endpoint is asked whose weights are not ours. */
  readonly replicas?: Replicas;
  /** Absent: rolled out and evaluated, never trained. */
  readonly learner?: Learner;
  /** Teaches the policy to read before anything is demonstrated; absent where it can read or cannot be taught. */
  readonly reading?: ReadingTeacher;
}

/** The copies of a policy that act. */
export interface Replicas {
  /** Oldest version that one of them still answers with. */
  readonly oldest: PolicyVersion;
  status(): ModelPoolStatus;
  onEvent(listener: (e: ModelPoolEvent) => void): () => void;
}

/** A policy's engine of training. Calls are made one after another. */
export interface Learner {
  /** Whether the policy has words for what was done in a step. */
  expressible(t: Trajectory, step: number): boolean;
  /** `sampleWeights` of the report are in the order of the batch's steps. */
  update(b: LearnBatch): Promise<UpdateReport>;
  /** Passes over demonstrations; absent where the engine cannot imitate. */
  readonly imitate?: (b: LearnBatch, o: ImitateOptions) => Promise<UpdateReport>;
  /** The present weights, to be published when the run says so. */
  snapshot(): Promise<Snapshot>;
  checkpoint(): Promise<CheckpointRef>;
  /** Ends a lesson under way after its present step; what was learned so far stays. */
  interrupt(): void;
  /**
   * Forgets everything and goes on from a checkpoint, whose weights count as `version`, or untaught. Absent where the
   * engine keeps its weights elsewhere.
   */
  readonly startOver?: (version: PolicyVersion, from?: CheckpointRef) => Promise<void>;
  /** The version whose checkpoint the engine could not be started again from, where that is why a call failed. */
  readonly lostCheckpoint?: (e: unknown) => PolicyVersion | undefined;
}

/** Weights of one version on their way to the replicas. */
export interface Snapshot {
  readonly version: PolicyVersion;
  /** Publishes to one replica at a time; rejects, and the old weights stay in use, when they cannot be read. */
  publish(): Promise<SyncReport>;
}

/** A word to find on a screen, and the number the policy knows it by. */
export interface Word {
  readonly text: string;
  readonly bucket: number;
}
export interface ReadingTeacher {
  /** The words of training instructions; held-out seeds are not used. */
  words(tasks: Tasks): readonly Word[];
  /** Screens full of these words, drawn on desktops. */
  screens(o: ScreensRequest): Promise<readonly ReadingScreen[]>;
  read(screens: readonly ReadingScreen[], o: ReadOptions): Promise<ReadReport>;
}
export interface ScreensRequest {
  readonly pool: Pick<DesktopPool, 'lease'>;
  /** Image of the pool's desktops. */
  readonly image: string;
  readonly words: readonly Word[];
  /** Texts that no screen may show (Tasks.withheld). */
  readonly withheld: (text: string) => boolean;
  readonly count: number;
  readonly seed: number;
  /** Fonts of the texts, and their sizes in points; none: those of the desktop's applications. */
  readonly fonts: readonly string[];
  readonly sizes: readonly number[];
  readonly parallel: number;
  readonly signal: AbortSignal;
  readonly onProgress: (done: number) => void;
}

/** The request that starts a run's policy. */
export interface BackendRequest {
  readonly config: RunConfig;
  readonly dir: string;
  readonly run: string;
  readonly entry: ProcessEntry;
  readonly frames: FrameStore;
  /** Continue from this checkpoint, whose weights count as `version`. */
  readonly checkpoint?: { readonly version: number; readonly dir: string };
  /** Version of the untaught weights, where there is no checkpoint; default 0. */
  readonly version?: number;
  /** The policy is not used again: what model servers have loaded for it is unloaded at the end. */
  readonly temporary?: true;
  /**
   * Cancels the start: it rejects with `cancelled`, whatever else went wrong (Ctrl-C in a terminal also ends child
   * processes that have only just started).
   */
  readonly signal: AbortSignal;
  /** Progress of reading lessons and imitation. */
  readonly onLesson?: (step: number, steps: number, loss: number) => void;
  /** The step that the start is at, in words; undefined when it is over. */
  readonly onStarting?: (what: string | undefined) => void;
  /** The model servers' own descriptions, for the journal. */
  readonly onServed?: (s: ServedModel) => void;
  /** Adds a note to the run's log. */
  readonly onNote?: (text: string) => void;
  /** Something that the policy needs is gone for good: the run ends with this. */
  readonly onFault?: (e: StudioError) => void;
}
