import { readFile } from 'node:fs/promises';
import {
  classOfCharacter,
  EDGE,
  StudioError,
  toRunError,
  type EmbeddedPolicySpec,
  type RunError,
} from '../../domain/index.js';
import { desktopJson } from '../../foreign/desktopJson.js';
import { isObject } from '../../foreign/json.js';
import { imageAsset } from '../../cluster/images.js';
import type { Desktop } from '../../cluster/types.js';
import { tokenizeInstruction } from '../../policy/embedded/instruction.js';
import type { ReadingScreen } from '../../trainer/types.js';
import type { Tasks } from '../../tasks/open.js';
import { lessonTexts } from './lessonTexts.js';
import type { ScreensRequest, Word } from './types.js';

/** Screens that one call of the drawing program makes: about a second of work and 2 MB. */
const PER_CALL = 24;
/** After so many failures in a row drawing does not work here, whichever desktop draws. */
const FAILURES = 5;
const DRAWING_MS = 60_000;

/**
 * The words of training instructions, as written: what the base policy learns to find on a screen. Held-out seeds are
 * not used.
 */
export function vocabulary(spec: EmbeddedPolicySpec, tasks: Tasks, seeds = 40): Word[] {
  const words = new Map<string, number>();
  for (const f of tasks.families) {
    for (const seed of tasks.demoSeeds.slice(0, seeds)) {
      for (const t of tokenizeInstruction(spec, tasks.source.task(f.id, seed).instruction)) {
        // Texts that can appear on a screen: quoted words, names, and words in capitals such as OK.
        if (
          (t.kind === 'quoted' || t.kind === 'name' || t.text === t.text.toUpperCase()) &&
          /^\p{L}{2,14}$/u.test(t.text)
        )
          words.set(t.text, t.bucket);
      }
    }
  }
  return [...words].map(([text, bucket]) => ({ text, bucket })).sort((a, b) => (a.text < b.text ? -1 : 1));
}

/**
 * Screens full of texts (lessonTexts.ts), drawn inside desktops with their fonts (overlay/opt/dart/words.py of their image). No
 * task is shown and nothing is clicked: the policy learns to read here, so that the few demonstrations only need to
 * teach it what to do (runtime/trainer/README.md#reading-lessons). What a lost desktop was to draw another one draws.
 */
export async function readingScreens(spec: EmbeddedPolicySpec, o: ScreensRequest): Promise<ReadingScreen[]> {
  // Passed as an argument, so that it also works in a root file system built before the program existed.
  const program = await readFile(await imageAsset(o.image, 'overlay/opt/dart/words.py'), 'utf8'),
    drawn = new Map<number, ReadingScreen[]>(),
    open = Array.from({ length: Math.ceil(o.count / PER_CALL) }, (_, n) => n * PER_CALL);
  let done = 0,
    failures = 0;
  /** Draws until nothing is left, or until the desktop fails: its error. */
  const draw = async (desktop: Desktop): Promise<RunError | undefined> => {
    for (let from = open.shift(); from !== undefined && !o.signal.aborted; from = open.shift()) {
      try {
        const screens = await drawScreens(spec, o, desktop, program, from);
        drawn.set(from, screens);
        failures = 0;
        o.onProgress((done += screens.length));
      } catch (e) {
        open.unshift(from);
        const error = toRunError(e);
        if (!error.kind.startsWith('desktop.') || ++failures >= FAILURES) throw e;
        return error;
      }
    }
    return undefined;
  };
  const worker = async (): Promise<void> => {
    while (open.length > 0 && !o.signal.aborted) {
      const lease = await o.pool.lease({ signal: o.signal });
      let fault: RunError | undefined;
      try {
        fault = await draw(lease.desktop);
      } finally {
        lease.release(fault && { broken: true, fault });
      }
    }
  };
  await Promise.all(Array.from({ length: o.parallel }, worker));
  if (o.signal.aborted)
    throw new StudioError('cancelled', 'The reading lessons were stopped.', 'Start the run again when you are ready.');
  // In the order of their seeds, whichever desktop was faster.
  return [...drawn].sort(([a], [b]) => a - b).flatMap(([, screens]) => screens);
}

/** The screens from number `from` on, as many as one call makes. */
async function drawScreens(
  spec: EmbeddedPolicySpec,
  o: ScreensRequest,
  desktop: Desktop,
  program: string,
  from: number,
): Promise<ReadingScreen[]> {
  const { width, height } = spec.obs,
    texts = lessonTexts(spec, o, from),
    ask = {
      seed: o.seed * 1_000_003 + from,
      count: Math.min(PER_CALL, o.count - from),
      texts: texts.map((t) => t.text),
      width: width * 2,
      height: height * 2,
      fonts: o.fonts,
      sizes: o.sizes,
    };
  const r = await desktop.exec(['python3', '-c', program], {
    stdin: JSON.stringify(ask),
    timeoutMs: DRAWING_MS,
    signal: o.signal,
  });
  if (r.timedOut)
    throw new StudioError(
      'desktop.exec',
      `Drawing reading screens took longer than ${DRAWING_MS / 1000} s.`,
      'Run fewer desktops at once (desktops.count), or leave the machine more room.',
    );
  if (r.code !== 0)
    throw new StudioError(
      'desktop.exec',
      `Drawing reading screens failed: ${r.stderr.toString('utf8').trim().split('\n').at(-1) || `the program ended with ${r.code}`}`,
      'Build the desktop again: `dart-studio desktop build --force`.',
    );
  return parseScreens(r.stdout, width * height, texts);
}

/** The drawing program's description of a screen, in observation pixels. */
interface Head {
  readonly texts: readonly number[];
  readonly boxes: readonly (readonly number[])[];
  /** Per text: the middles of its characters. `middles`: the height of the middle of its small letters. */
  readonly centres: readonly (readonly number[])[];
  readonly middles: readonly number[];
}
/** How far outside a text its edges are marked. */
const EDGE_PIXELS = 3;
/** Bounds of a description: 90 texts of 14 letters have 1,800 values (overlay/opt/dart/words.py). */
const HEAD = { bytes: 1 << 18, depth: 3, values: 1 << 13 };
/** A coordinate beyond this is on no screen. */
const FARTHEST = 1 << 15;

const unusable = (why: string): StudioError =>
  new StudioError(
    'desktop.exec',
    `A reading screen ${why}.`,
    'Try again. If it keeps happening, run `dart-studio desktop build --force`.',
  );

function headOf(line: Buffer, texts: readonly Word[]): Head {
  const head = desktopJson(line, HEAD, (why) => unusable(`came with a description that ${why}`));
  if (!isHead(head, texts)) throw unusable('came with a description that does not fit what was asked for');
  return head;
}

const places = (v: unknown, count: number): boolean =>
  Array.isArray(v) && v.length === count && v.every((n) => typeof n === 'number' && Math.abs(n) <= FARTHEST);
function isHead(head: unknown, words: readonly Word[]): head is Head {
  if (!isObject(head)) return false;
  const { texts, boxes, centres, middles } = head;
  if (!Array.isArray(texts) || !Array.isArray(boxes) || !Array.isArray(centres)) return false;
  return (
    boxes.length === texts.length &&
    centres.length === texts.length &&
    places(middles, texts.length) &&
    boxes.every((b) => places(b, 4)) &&
    texts.every((index, n) => {
      const word = typeof index === 'number' ? words[index] : undefined;
      return word !== undefined && places(centres[n], [...word.text].length);
    })
  );
}

/** The screens in an answer: one JSON line, then the pixels, again and again. */
export function parseScreens(b: Buffer, pixels: number, texts: readonly Word[]): ReadingScreen[] {
  const out: ReadingScreen[] = [];
  for (let at = 0; at < b.length;) {
    const eol = b.indexOf(10, at);
    if (eol < 0 || eol + 1 + pixels > b.length) throw unusable('came back cut short');
    if (out.length === PER_CALL) throw unusable('came back that nobody asked for');
    const head = headOf(b.subarray(at, eol), texts);
    out.push({
      obs: Uint8Array.from(b.subarray(eol + 1, eol + 1 + pixels)),
      buckets: Int32Array.from(head.texts, (i) => texts[i]!.bucket),
      boxes: Int32Array.from(head.boxes.flat()),
      marks: marksOf(head, texts),
    });
    at = eol + 1 + pixels;
  }
  return out;
}

function marksOf(head: Head, texts: readonly Word[]): Float32Array {
  const marks: number[] = [];
  head.texts.forEach((index, n) => {
    const [left, , right] = head.boxes[n] as [number, number, number],
      y = head.middles[n]!;
    marks.push(EDGE, left - EDGE_PIXELS, y);
    [...texts[index]!.text].forEach((c, i) => {
      const k = classOfCharacter(c);
      if (k !== undefined) marks.push(k, head.centres[n]![i]!, y);
    });
    marks.push(EDGE, right + EDGE_PIXELS, y);
  });
  return Float32Array.from(marks);
}
