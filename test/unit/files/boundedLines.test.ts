import { PassThrough, Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { boundedLines, linesOf } from '../../../runtime/files/boundedLines.js';

/** What is heard of chunks; `tooLong` is heard as undefined. */
async function heardOf(chunks: readonly Uint8Array[], most: number): Promise<readonly (string | undefined)[]> {
  const stream = new PassThrough(),
    heard: (string | undefined)[] = [];
  boundedLines(
    stream,
    most,
    (l) => heard.push(l),
    () => heard.push(undefined),
  );
  for (const c of chunks) stream.write(c);
  const ended = new Promise((done) => stream.once('close', done));
  stream.end();
  await ended;
  return heard;
}

describe('lines of another program', () => {
  it('are those it wrote, however they come in pieces', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: 'grapheme' }).map((s) => s.replace(/[\r\n]/g, ''))),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
        async (lines, sizes) => {
          const bytes = Buffer.from(lines.map((l) => `${l}\n`).join('')),
            chunks: Buffer[] = [];
          for (let at = 0, i = 0; at < bytes.length; i++) {
            const size = sizes[i % sizes.length]!;
            chunks.push(bytes.subarray(at, at + size));
            at += size;
          }
          expect(await heardOf(chunks, 1 << 20)).toEqual(lines);
          const asked: string[] = [];
          for await (const l of linesOf(Readable.from(chunks, { objectMode: true }), 1 << 20)) asked.push(l);
          expect(asked).toEqual(lines);
        },
      ),
    );
  });
  it('are asked for one by one too, until one is too long', async () => {
    const heard: string[] = [];
    const all = async (): Promise<void> => {
      for await (const l of linesOf(
        Readable.from(['one\ntw', 'o\n', 'x'.repeat(9), 'x\n'].map((s) => Buffer.from(s))),
        9,
      ))
        heard.push(l);
    };
    await expect(all()).rejects.toThrow(/more than 9 bytes/);
    expect(heard).toEqual(['one', 'two']);
  });
  it('may end with the stream, and in the manner of Windows', async () => {
    expect(await heardOf([Buffer.from('one\r\ntwo')], 100)).toEqual(['one', 'two']);
  });
  it.each([1, 7, 64])(
    'of more bytes than allowed are not kept, in pieces of %i, and nothing is heard after',
    async (n) => {
      const chunks = Array.from({ length: Math.ceil(101 / n) }, () => Buffer.alloc(n, 'x'));
      expect(await heardOf([Buffer.from('fine\n'), ...chunks, Buffer.from('\nlate\n')], 100)).toEqual([
        'fine',
        undefined,
      ]);
      expect(await heardOf([Buffer.alloc(100, 'x'), Buffer.from('\n')], 100)).toEqual(['x'.repeat(100)]);
    },
  );
});
