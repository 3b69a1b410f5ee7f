/** Identifiers are plain strings with a brand, so that a rollout's id cannot be passed where a task's is meant. */
declare const brand: unique symbol;
type Id<B extends string> = string & { readonly [brand]: B };

export type RunId = Id<'run'>;
/** One concrete task: template and seed, e.g. `desk/calc-sum#17`, or an OSWorld task's uuid. */
export type TaskId = Id<'task'>;
/** The unit of statistics: a template of a suite (all seeds), or the task itself where there are no templates. */
export type FamilyId = Id<'family'>;
export type RolloutId = Id<'rollout'>;
export type GroupId = Id<'group'>;
export type BatchId = Id<'batch'>;
export type DesktopId = Id<'desktop'>;
export type ReplicaId = Id<'replica'>;

/** Number of optimizer updates that made these weights; 0 = untrained. */
export type PolicyVersion = number;

/** Give a string its brand: `id<TaskId>('desk/calc-sum#17')`. */
export const id = <T extends string>(s: string): T => s as T;
