import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';

/** Characters of a line of a log: an engine's has its address. */
export const MOST_LINE = 1 << 16;

/**
 * Calls `heard` for each line of a log. One that is rewritten in place, as progress is, is a line each time; of a longer
 * one than `MOST_LINE` its beginning is heard.
 */
export function logLines(stream: Readable, heard: (line: string) => void): void {
  const text = new StringDecoder('utf8');
  let rest = '',
    cut = false;
  const take = (more: string): void => {
    const lines = (rest + more).split(/\r\n|\r|\n/);
    rest = lines.pop()!;
    for (const [i, line] of lines.entries()) if (i > 0 || !cut) heard(line.slice(0, MOST_LINE));
    if (lines.length > 0) cut = false;
    if (cut) rest = '';
    if (rest.length <= MOST_LINE) return;
    heard(rest.slice(0, MOST_LINE));
    rest = '';
    cut = true;
  };
  stream.on('data', (chunk: Buffer) => take(text.write(chunk)));
  stream.on('end', () => {
    if (rest !== '') heard(rest);
  });
}
