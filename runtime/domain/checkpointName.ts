/** Folders of a run's `checkpoints` that hold weights. */
export const checkpointName = /^v\d+$/;
/** Of a run that learned: whether none of its checkpoints is among these names. */
export const lacksCheckpoints = (version: number, names: readonly string[]): boolean =>
  version > 0 && !names.some((name) => checkpointName.test(name));
