/**
 * On a machine that has too much to do, programs of a desktop wait for a processor: what was done is not judged as not
 * done because nobody let them run.
 *
 * @param share Of the time that the program which waited longest waited (`SettleReport.starved`).
 */
export const isStarved = (share: number | undefined): boolean => share !== undefined && share >= 0.2;
