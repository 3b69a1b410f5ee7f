/** The selection `now` without those exclusive items that were chosen before a newer one was. Pure. */
export function lastOfEither<T>(now: readonly T[], before: readonly T[], either: (x: T) => boolean): readonly T[] {
  const some = now.filter(either);
  if (some.length < 2) return now;
  const kept = some.findLast((x) => !before.includes(x)) ?? some.at(-1);
  return now.filter((x) => !either(x) || x === kept);
}
