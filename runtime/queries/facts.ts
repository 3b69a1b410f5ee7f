import type { RunConfig } from '../config/index.js';
import type { RunError } from '../domain/index.js';

/** The facts of a run from its run file: its configuration, and its families as the task source describes them. */
export interface RunFacts {
  /** Absent when it was made by hand, or for a version with other options. */
  readonly config?: RunConfig | undefined;
  /** Families trained on. */
  readonly trained: readonly string[];
  readonly families: ReadonlyMap<string, FamilyFacts>;
  /** Why its tasks cannot be read any more: its families have no words then. */
  readonly unread?: RunError | undefined;
}
export interface FamilyFacts {
  readonly title: string;
  readonly apps: readonly string[];
  /** The folder of its file. */
  readonly domain?: string | undefined;
  readonly heldOut: boolean;
  readonly infeasible: boolean;
}
