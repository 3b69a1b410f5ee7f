/**
 * Words of others on a terminal: task files, pages, servers and files of others may hold sequences that move its
 * cursor, rewrite what stands there, set its title or the clipboard.
 */

/** Control and formatting characters but line breaks, tabs and what joins letters and pictures. */
const STEERS = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}]/gu;

/** The text without anything that steers a terminal; line breaks and tabs stay. */
export const printable = (text: string): string => text.replace(/\r(?=\n)/g, '').replace(STEERS, '\ufffd');
/** The same, in one line: what stands in a row of a table cannot make rows of its own. */
export const printableLine = (text: string): string => printable(text.replace(/[\r\n\t]+/g, ' '));
/** JSON of the same meaning: JSON.stringify leaves DEL, the second set of control characters and formatting as they are. */
export const printableJson = (json: string): string =>
  json.replace(STEERS, (c) =>
    Array.from({ length: c.length }, (_, i) => `\\u${c.charCodeAt(i).toString(16).padStart(4, '0')}`).join(''),
  );
