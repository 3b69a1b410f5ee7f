/** Marks a text that people read on a page for translation (scripts/l10n.mjs collects it). */
export const message = (english: string): string => english;
