/** Folders of a run's `checkpoints` that hold weights. */
export const checkpointName = /^v\d+$/;
/** Whether none of these names is a checkpoint of a run that has learned (version above 0). */
export const lacksCheckpoints = (version: number, names: readonly string[]): boolean =>
  version > 0 && !names.some((name) => checkpointName.test(name));
