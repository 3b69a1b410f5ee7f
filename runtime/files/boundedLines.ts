import type { Readable } from 'node:stream';

/**
 * Calls `heard` for each line of what another program prints, without its end. Of a line of more than `most` bytes
 * nothing is kept: `tooLong` is called when its bound is passed, and the stream is heard no more.
 */
export function boundedLines(stream: Readable, most: number, heard: (line: string) => void, tooLong: () => void): void {
  let parts: Buffer[] = [],
    length = 0;
  const take = (chunk: Buffer): void => {
    for (let from = 0; ;) {
      const eol = chunk.indexOf(10, from),
        part = chunk.subarray(from, eol < 0 ? undefined : eol);
      length += part.length;
      if (length > most) {
        stream.off('data', take);
        // What still comes is thrown away, so that its writer is not left waiting before it is ended.
        stream.resume();
        parts = [];
        length = 0;
        return tooLong();
      }
      parts.push(part);
      if (eol < 0) return;
      const line = (parts.length === 1 ? part : Buffer.concat(parts)).toString('utf8');
      parts = [];
      length = 0;
      heard(line.endsWith('\r') ? line.slice(0, -1) : line);
      from = eol + 1;
    }
  };
  stream.on('data', take);
  stream.on('end', () => {
    if (length > 0) heard(Buffer.concat(parts).toString('utf8'));
  });
}
