import { describe, expect, it } from 'vitest';
import type { DesktopPool } from '../../../runtime/cluster/types.js';
import { classOfCharacter, EDGE, READER_SPEC, StudioError } from '../../../runtime/domain/index.js';
import { parseScreens, readingScreens } from '../../../runtime/run/backends/reading.js';

const words = [
  { text: 'ab', bucket: 7 },
  { text: 'C\u00e9', bucket: 9 },
];
const screen = (pixels: number[], head: object): Buffer =>
  Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), Buffer.from(pixels)]);

describe('reading screens from a desktop', () => {
  it('are told apart even when a pixel looks like a line end', () => {
    const b = Buffer.concat([
      screen([10, 10, 3, 4], { texts: [1], boxes: [[1, 2, 3, 4]], centres: [[1.5, 2.5]], middles: [3] }),
      screen([5, 6, 7, 10], {
        texts: [0, 1],
        centres: [
          [0.25, 0.75],
          [2.25, 2.75],
        ],
        middles: [0.5, 2.5],
        boxes: [
          [0, 0, 1, 1],
          [2, 2, 3, 3],
        ],
      }),
    ]);
    expect(parseScreens(b, 4, words)).toEqual([
      {
        obs: Uint8Array.of(10, 10, 3, 4),
        buckets: Int32Array.of(9),
        boxes: Int32Array.of(1, 2, 3, 4),
        // The edges stand beside the text; a character that the policy has no class for is not marked.
        marks: Float32Array.of(EDGE, -2, 3, classOfCharacter('C')!, 1.5, 3, EDGE, 6, 3),
      },
      {
        obs: Uint8Array.of(5, 6, 7, 10),
        buckets: Int32Array.of(7, 9),
        boxes: Int32Array.of(0, 0, 1, 1, 2, 2, 3, 3),
        marks: Float32Array.from(
          [
            [EDGE, -3, 0.5, classOfCharacter('a')!, 0.25, 0.5, classOfCharacter('b')!, 0.75, 0.5, EDGE, 4, 0.5],
            [EDGE, -1, 2.5, classOfCharacter('C')!, 2.25, 2.5, EDGE, 6, 2.5],
          ].flat(),
        ),
      },
    ]);
  });
  it.each([
    ['a text that nobody gave', { texts: [2] }],
    ['no index', { texts: ['0'] }],
    ['a box too few', { boxes: [] }],
    ['a box of two', { boxes: [[1, 2]] }],
    ['a character too few', { centres: [[1]] }],
    ['a middle that is none', { middles: [null] }],
    ['a place beyond any screen', { middles: [1e30] }],
    ['no lists', { texts: 3 }],
  ])('with %s are an error', (_what, wrong) => {
    const head = { texts: [0], boxes: [[1, 2, 3, 4]], centres: [[1, 2]], middles: [3] };
    expect(parseScreens(screen([1, 2, 3, 4], head), 4, words)).toHaveLength(1);
    expect(() => parseScreens(screen([1, 2, 3, 4], { ...head, ...wrong }), 4, words)).toThrow(StudioError);
  });
  it('with a description that is nested without end, or no JSON, are an error', () => {
    for (const text of ['['.repeat(100_000), `[${'[],'.repeat(10_000)}[]]`, '}{', 'null']) {
      const b = Buffer.concat([Buffer.from(`${text}\n`), Buffer.alloc(4)]);
      expect(() => parseScreens(b, 4, words)).toThrow(StudioError);
    }
  });
  it('of which there are more than were asked for are an error', () => {
    const none = screen([1, 2, 3, 4], { texts: [], boxes: [], centres: [], middles: [] });
    expect(parseScreens(Buffer.concat(Array<Buffer>(24).fill(none)), 4, words)).toHaveLength(24);
    expect(() => parseScreens(Buffer.concat(Array<Buffer>(25).fill(none)), 4, words)).toThrow(StudioError);
  });
  it('that come back cut short are an error', () => {
    expect(() => parseScreens(screen([1, 2, 3], { texts: [], boxes: [], centres: [], middles: [] }), 4, words)).toThrow(
      StudioError,
    );
  });

  it('are drawn in the fonts and sizes that the run file names', async () => {
    const asked: { fonts: readonly string[]; sizes: readonly number[]; count: number }[] = [],
      { width, height } = READER_SPEC.obs,
      none = screen(Array<number>(width * height).fill(0), { texts: [], boxes: [], centres: [], middles: [] });
    const desktop = {
      exec: (_: readonly string[], { stdin }: { stdin: string }) => {
        asked.push(JSON.parse(stdin) as (typeof asked)[number]);
        return Promise.resolve({ code: 0, stdout: none, stderr: Buffer.alloc(0) });
      },
    };
    const screens = await readingScreens(READER_SPEC, {
      pool: { lease: () => Promise.resolve({ desktop, release: () => undefined }) } as unknown as DesktopPool,
      image: 'desk',
      words: [],
      withheld: () => false,
      count: 1,
      seed: 1,
      fonts: ['DejaVu Sans'],
      sizes: [14, 19],
      parallel: 1,
      signal: new AbortController().signal,
      onProgress: () => undefined,
    });
    expect(screens).toHaveLength(1);
    expect(asked).toMatchObject([{ fonts: ['DejaVu Sans'], sizes: [14, 19], count: 1 }]);
  });
});
