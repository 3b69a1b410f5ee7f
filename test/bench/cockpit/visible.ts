/** What a page showed of a rollout, by the clock: from when to when it was looked at, and when each step appeared. */
export interface Shown {
  readonly since: number;
  readonly until: number;
  readonly at: Readonly<Record<string, number>>;
}
/** Steps so shortly before the end of looking may come too late to be blamed on the page. */
const LATE_MS = 1000;

/**
 * Milliseconds from each step of a rollout to its appearance, of steps that happened while the page showed it; Infinity for
 * one that never appeared: a page that stops after the first step would pass otherwise. `at`: "ROLLOUT/INDEX" -> time.
 */
export function visibleAfter(rollout: string, shown: Shown, at: ReadonlyMap<string, number>): number[] {
  return [...at].flatMap(([key, happened]) => {
    if (!key.startsWith(`${rollout}/`) || happened < shown.since) return [];
    const appeared = shown.at[key.slice(rollout.length + 1)];
    if (appeared !== undefined) return [appeared - happened];
    return happened <= shown.until - LATE_MS ? [Infinity] : [];
  });
}
