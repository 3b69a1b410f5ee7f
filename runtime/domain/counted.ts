/** "1 step", "2 steps": for words whose plural ends in s. */
export const counted = (n: number, what: string): string => `${n} ${what}${n === 1 ? '' : 's'}`;
