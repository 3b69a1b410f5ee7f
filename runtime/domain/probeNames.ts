/** Prefix of the ids of an evaluation's episodes. */
export const probePrefix = (label: string): string => `probe/${label}/`;
