/** What the ids of an evaluation's episodes begin with. */
export const probePrefix = (label: string): string => `probe/${label}/`;
