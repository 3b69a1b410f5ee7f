/**
 * Words of others on a terminal: task files, pages, servers and files of others may hold sequences that move its
 * cursor, rewrite what stands there, set its title or the clipboard.
 */

/** Control and formatting characters but those that join letters and pictures; line breaks and tabs are as wished. */
const STEERS = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}]/gu,
  STEERS_OR_BREAKS = /(?![\u200c\u200d])[\p{Cc}\p{Cf}]/gu;

/** With nothing in it that steers a terminal; line breaks and tabs stay. */
export const printable = (text: string): string => text.replace(/\r(?=\n)/g, '').replace(STEERS, '\ufffd');
/** The same, in one line: what stands in a row of a table cannot make rows of its own. */
export const printableLine = (text: string): string => text.replace(STEERS_OR_BREAKS, '\ufffd');
