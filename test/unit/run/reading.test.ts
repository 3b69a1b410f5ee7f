import { describe, expect, it } from 'vitest';
import type { DesktopPool, Lease } from '../../../runtime/cluster/types.js';
import { classOfCharacter, EDGE, READER_SPEC, StudioError } from '../../../runtime/domain/index.js';
import { parseScreens, readingScreens } from '../../../runtime/run/backends/reading.js';
import type { ScreensRequest } from '../../../runtime/run/backends/types.js';

const words = [
  { text: 'ab', bucket: 7 },
  { text: 'C\u00e9', bucket: 9 },
];
const screen = (pixels: number[], head: object): Buffer =>
  Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), Buffer.from(pixels)]);

const lost = new StudioError('desktop.lost', 'The desktop was lost.', 'It is replaced.');
/** Draws, and tells the number of the first screen of each one's batch. The calls fail with `faults`, one after another. */
async function drawn(
  count: number,
  faults: readonly (StudioError | 'late' | 'fails' | undefined)[],
  o: Partial<ScreensRequest> = {},
) {
  const { width, height } = READER_SPEC.obs,
    asked: { fonts: readonly string[]; sizes: readonly number[]; count: number; seed: number }[] = [],
    released: Parameters<Lease['release']>[0][] = [];
  const answer = (code: number, stdout: Buffer, stderr = '', timedOut = false) =>
    Promise.resolve({ code, stdout, stderr: Buffer.from(stderr), timedOut });
  const exec = (_: readonly string[], { stdin }: { stdin: string }) => {
    const fault = faults[asked.length],
      ask = JSON.parse(stdin) as (typeof asked)[number];
    asked.push(ask);
    if (fault instanceof StudioError) return Promise.reject(fault);
    if (fault === 'late') return answer(-9, Buffer.alloc(0), '', true);
    if (fault === 'fails') return answer(1, Buffer.alloc(0), 'Traceback:\nno module named X');
    const pixels = Array<number>(width * height).fill(ask.seed - 1_000_003);
    return answer(
      0,
      Buffer.concat(Array<Buffer>(ask.count).fill(screen(pixels, { texts: [], boxes: [], centres: [], middles: [] }))),
    );
  };
  const lease = { desktop: { exec }, release: (r?: (typeof released)[number]) => released.push(r) };
  const screens = await readingScreens(READER_SPEC, {
    pool: { lease: () => Promise.resolve(lease) } as unknown as DesktopPool,
    image: 'desk',
    words: [],
    withheld: () => false,
    count,
    seed: 1,
    fonts: [],
    sizes: [],
    parallel: 1,
    signal: new AbortController().signal,
    onProgress: () => undefined,
    ...o,
  });
  return { screens: screens.map((s) => s.obs[0]), asked, released };
}

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
    const { screens, asked } = await drawn(1, [], { fonts: ['DejaVu Sans'], sizes: [14, 19] });
    expect(screens).toEqual([0]);
    expect(asked).toMatchObject([{ fonts: ['DejaVu Sans'], sizes: [14, 19], count: 1 }]);
  });

  it('that a desktop was drawing when it was lost another one draws, and they come in the order of their seeds', async () => {
    const { screens, asked, released } = await drawn(50, [lost, undefined, 'late'], { parallel: 2 });
    expect(screens).toEqual([...Array<number>(24).fill(0), ...Array<number>(24).fill(24), 48, 48]);
    expect(asked.map((a) => a.count).sort()).toEqual([2, 24, 24, 24, 24]);
    expect(released.filter((r) => r?.broken).map((r) => r!.fault?.kind)).toEqual(['desktop.lost', 'desktop.exec']);
    expect(released).toHaveLength(4);
  });

  it('that no desktop draws end the lesson with what the last one said', async () => {
    await expect(drawn(1, Array<'fails'>(9).fill('fails'))).rejects.toThrow('no module named X');
    const { asked } = await drawn(1, Array<'fails'>(4).fill('fails'));
    expect(asked).toHaveLength(5);
  });
});
