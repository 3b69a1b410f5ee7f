/**
 * The policy graph in ONNX Runtime: one session, one intra-op thread, tensors allocated once and written in place. The
 * graph takes the weights as its flat input `theta`, so swapping weights means passing another vector
 * (runtime/policy/README.md#replica-processes).
 *
 * Inputs: theta f32[P], obs u8[1,H,W], instruction i32[1,2T], history i32[1,4L+1]. Outputs: logits f32[1,n] of every
 * head. A policy that spells has two more, its reader's, which look at the screen first, part by part
 * (screenReader.ts): features, and logits in which plain code finds the words of the instruction (domain/findWords.ts);
 * all three are inputs of the policy graph.
 * `run` blocks the calling thread, which is why a session lives in a process of its own.
 */
import { createHash } from 'node:crypto';
import type * as Ort from 'onnxruntime-node';
import type { EmbeddedPolicySpec, EncodedState } from '../../domain/index.js';
import { loadOrt } from '../../domain/onnxRuntime.js';
import {
  FACTS,
  HEADS,
  StudioError,
  findWords,
  headSizes,
  messageOf,
  readerGraphFiles,
  recordOf,
  spells,
  textAtCell,
  type Alignment,
} from '../../domain/index.js';
import { readForeign } from '../../files/foreignFile.js';
import type { WeightsRef } from '../types.js';
import type { Logits } from './sampling.js';
import { ScreenReader, type ReaderGraph } from './screenReader.js';

export interface GraphSession {
  /** Number of parameters the graph takes. */
  readonly parameters: number;
  /** Reads, checks and uses another flat f32 file. Rejects with `store.damaged`; the old weights then stay in use. */
  load(weights: Pick<WeightsRef, 'path' | 'sha256'>): Promise<void>;
  /** Logits of every head; the arrays are reused by the next run. */
  run(state: EncodedState): Promise<Logits>;
  /** The text that the reader sees at a cell of the last screen; undefined where it sees none. */
  textAt(cell: number): string | undefined;
  release(): Promise<void>;
}

export async function openGraph(
  spec: EmbeddedPolicySpec,
  graphFile: string,
  weights: Pick<WeightsRef, 'path' | 'sha256'>,
): Promise<GraphSession> {
  const ort = await loadOrt();
  const session = await createSession(ort, graphFile);
  const reader = spells(spec)
    ? await openReader(ort, spec, readerGraphFiles(graphFile), shapeOf(session, 'features'))
    : undefined;
  const { obs, instruction, history, feeds, logits, fetches } = bindTensors(ort, spec);
  const [parameters = 0] = shapeOf(session, 'theta');
  const self: GraphSession = {
    parameters,
    async load(w) {
      const theta = await readWeights(w, parameters);
      feeds.theta = new ort.Tensor('float32', theta, [theta.length]);
      reader?.use(theta);
    },
    async run(state) {
      obs.set(state.obs);
      instruction.set(state.instruction.subarray(0, instruction.length));
      history.set(state.history);
      if (reader) Object.assign(feeds, await reader.look(obs, state.instruction));
      await session.run(feeds, fetches);
      return logits;
    },
    textAt: (cell) => reader?.textAt(cell),
    release: async () => {
      await Promise.all([session.release(), reader?.release()]);
    },
  };
  try {
    await self.load(weights);
  } catch (e) {
    await self.release();
    throw e;
  }
  return self;
}

interface Reader {
  /** Uses the reader's weights, which come first in `theta`, and forgets what it has read when they have changed. */
  use(theta: Float32Array): void;
  /** The policy graph's further inputs for a screen and an instruction. */
  look(obs: Uint8Array, instruction: Int32Array): Promise<Record<string, Ort.Tensor>>;
  textAt(cell: number): string | undefined;
  release(): Promise<void>;
}

async function openReader(
  ort: typeof Ort,
  spec: EmbeddedPolicySpec,
  files: ReturnType<typeof readerGraphFiles>,
  featuresShape: readonly number[],
): Promise<Reader> {
  const sessions = {
      bands: await Promise.all(files.bands.map((f) => createSession(ort, f))),
      rows: await Promise.all(files.rows.map((f) => createSession(ort, f))),
    },
    { maxTokens } = spec.instruction,
    tensors = {
      features: floats(ort, featuresShape),
      found: floats(ort, [1, maxTokens, headSizes(spec).cell]),
      facts: floats(ort, [1, maxTokens, FACTS]),
    };
  const arrays = recordOf(['features', 'found', 'facts'], (k) => tensors[k].data as Float32Array);
  let theta = floats(ort, shapeOf(sessions.bands[0]!, 'theta')),
    seen: Alignment | undefined;
  const screen = new ScreenReader(spec, {
    bands: sessions.bands.map((s) => inPlace(ort, s, () => theta, 'patches', 'strokes')),
    rows: sessions.rows.map((s) => inPlace(ort, s, () => theta, 'bands', 'features', 'logits')),
  });
  return {
    use(all) {
      const before = theta.data as Float32Array,
        now = all.subarray(0, before.length);
      // Imitation and reinforcement learning usually leave the reader's weights unchanged
      // (trainer/native/model/reader.ts).
      if (Buffer.compare(bytesOf(now), bytesOf(before)) === 0) return;
      theta = floats(ort, theta.dims, now);
      screen.forget();
    },
    async look(obs, instruction) {
      seen = await screen.look(obs, arrays.features);
      findWords(spec, instruction, seen, arrays);
      return tensors;
    },
    textAt: (cell) => seen && textAtCell(spec, seen, cell),
    release: async () => {
      await Promise.all([...sessions.bands, ...sessions.rows].map((s) => s.release()));
    },
  };
}

/** A graph of the reader whose input and outputs are written and read in place. */
function inPlace<O extends string>(
  ort: typeof Ort,
  session: Ort.InferenceSession,
  theta: () => Ort.Tensor,
  input: string,
  ...outputs: readonly O[]
): ReaderGraph<Readonly<Record<O, Float32Array>>> {
  const into = floats(ort, shapeOf(session, input)),
    fetches = recordOf(outputs, (o) => floats(ort, shapeOf(session, o))),
    out = recordOf(outputs, (o) => fetches[o].data as Float32Array);
  return {
    atOnce: fetches[outputs[0]!].dims[0]!,
    input: into.data as Float32Array,
    run: async () => {
      await session.run({ theta: theta(), [input]: into }, fetches);
      return out;
    },
  };
}
function floats(ort: typeof Ort, shape: readonly number[], data?: Float32Array): Ort.Tensor {
  return new ort.Tensor('float32', data ?? new Float32Array(shape.reduce((n, x) => n * x, 1)), shape);
}
const bytesOf = (x: Float32Array): Uint8Array => new Uint8Array(x.buffer, x.byteOffset, x.byteLength);

async function createSession(ort: typeof Ort, graphFile: string): Promise<Ort.InferenceSession> {
  try {
    return await ort.InferenceSession.create(graphFile, {
      intraOpNumThreads: 1,
      interOpNumThreads: 1,
      executionMode: 'sequential',
      graphOptimizationLevel: 'all',
    });
  } catch (e) {
    throw new StudioError(
      'engine.unavailable',
      `ONNX Runtime cannot open the policy graph ${graphFile}: ${messageOf(e)}`,
      'The trainer writes the graph file at the start of a run. Start the run again, and report this if it happens again.',
      { cause: e },
    );
  }
}

interface Bindings {
  readonly obs: Uint8Array;
  readonly instruction: Int32Array;
  readonly history: Int32Array;
  /** Tensors over the three arrays above; `theta` joins them when weights are loaded. */
  readonly feeds: Record<string, Ort.Tensor>;
  readonly logits: Record<(typeof HEADS)[number], Float32Array>;
  /** Tensors over `logits`. */
  readonly fetches: Record<string, Ort.Tensor>;
}

function bindTensors(ort: typeof Ort, spec: EmbeddedPolicySpec): Bindings {
  const { width, height } = spec.obs;
  const obs = new Uint8Array(width * height),
    instruction = new Int32Array(spec.instruction.maxTokens * 2),
    history = new Int32Array(spec.history.length * 4 + 1);
  const sizes = headSizes(spec);
  const logits = recordOf(HEADS, (h) => new Float32Array(sizes[h]));
  return {
    obs,
    instruction,
    history,
    feeds: {
      obs: new ort.Tensor('uint8', obs, [1, height, width]),
      instruction: new ort.Tensor('int32', instruction, [1, instruction.length]),
      history: new ort.Tensor('int32', history, [1, history.length]),
    },
    logits,
    fetches: recordOf(HEADS, (h) => new ort.Tensor('float32', logits[h], [1, sizes[h]])),
  };
}

/** The shape of an input or an output; empty when this ONNX Runtime does not report it. */
function shapeOf(session: Ort.InferenceSession, name: string): readonly number[] {
  const meta = [...session.inputMetadata, ...session.outputMetadata].find((m) => m.name === name);
  return meta?.isTensor ? meta.shape.map(Number) : [];
}

/** Bytes of a weights file: four hundred times those of the embedded policy. */
const mostBytes = 1 << 30;

async function readWeights(w: Pick<WeightsRef, 'path' | 'sha256'>, parameters: number): Promise<Float32Array> {
  const damaged = (what: string, cause?: unknown): StudioError =>
    new StudioError(
      'store.damaged',
      `The weights file ${w.path} ${what}.`,
      'Restore the last checkpoint (dart-studio train --resume); the replica keeps the weights it has.',
      { cause },
    );
  let bytes: Buffer;
  try {
    bytes = await readForeign(w.path, mostBytes);
  } catch (e) {
    throw damaged(`cannot be read: ${messageOf(e)}`, e);
  }
  if (createHash('sha256').update(bytes).digest('hex') !== w.sha256)
    throw damaged('does not have the checksum it was published with');
  if (bytes.length % 4 !== 0 || (parameters > 0 && bytes.length !== parameters * 4))
    throw damaged(`has ${bytes.length} bytes where the graph takes ${parameters} parameters of 4 bytes`);
  const theta = new Float32Array(bytes.length / 4);
  new Uint8Array(theta.buffer).set(bytes);
  return theta;
}
