/** Prefix of the ids of an evaluation's episodes. */
export const probePrefix = (label: string): string => `probe/${label}/`;
/** The same of episodes of held-out tasks in which a person tried a policy: they are no evaluation. */
export const heldOutTryPrefix = probePrefix('try');
