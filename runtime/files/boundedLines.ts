import type { Readable } from 'node:stream';
import { GrowingBuffer } from './growingBuffer.js';

/**
 * Calls `heard` for each line of what another program prints, without its end. Of a line of more than `most` bytes
 * nothing is kept: `tooLong` is called when its bound is passed, and the stream is heard no more.
 */
export function boundedLines(stream: Readable, most: number, heard: (line: string) => void, tooLong: () => void): void {
  const held = new GrowingBuffer();
  const take = (chunk: Buffer): void => {
    for (let from = 0; ;) {
      const eol = chunk.indexOf(10, from),
        part = chunk.subarray(from, eol < 0 ? undefined : eol);
      if (held.length + part.length > most) {
        stream.off('data', take);
        // Further output is thrown away, so that its writer is not left waiting before it is ended.
        stream.resume();
        held.take();
        return tooLong();
      }
      if (eol < 0) return held.add(part);
      const line = held.takeWith(part).toString('utf8');
      heard(line.endsWith('\r') ? line.slice(0, -1) : line);
      from = eol + 1;
    }
  };
  stream.on('data', take);
  stream.on('end', () => {
    if (held.length > 0) heard(held.take().toString('utf8'));
  });
}

export class LineTooLong extends Error {}

/** The lines of a stream, without their ends. Throws LineTooLong at one of more than `most` bytes. */
export async function* linesOf(stream: AsyncIterable<unknown>, most: number): AsyncGenerator<string> {
  const held = new GrowingBuffer();
  for await (const piece of stream) {
    const chunk = piece as Buffer;
    for (let from = 0; from < chunk.length;) {
      const eol = chunk.indexOf(10, from),
        part = chunk.subarray(from, eol < 0 ? undefined : eol);
      if (held.length + part.length > most) throw new LineTooLong(`a line of more than ${most} bytes`);
      from += part.length + 1;
      if (eol >= 0) yield held.takeWith(part).toString('utf8');
      else held.add(part);
    }
  }
  if (held.length > 0) yield held.take().toString('utf8');
}
