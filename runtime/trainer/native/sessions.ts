import type * as Ort from 'onnxruntime-node';
import { recordOf } from '../../domain/index.js';
import { adamGraph } from './model/adamGraph.js';
import { gradGraph, LOSS_PARAMS, scoreGraph, TOKENS, type GradVariant } from './model/lossGraph.js';
import { inputShapes } from './model/glyph.js';
import { foundShapes, towerGraph, type PolicyModel } from './model/policyGraph.js';
import { readGraph } from './model/readGraph.js';
import { spellGraph } from './model/spellGraph.js';
import { READ_CELLS, READ_WORDS, type Lesson } from './reading.js';
import type { Graph } from './graph/graph.js';
import type { PackedState, Perceived } from './packing.js';
import type { SpellingLesson } from './spelling.js';

export type Feeds = Record<string, Ort.Tensor>;

/**
 * The ONNX sessions of one policy, created when first needed (about 0.1 s each) and kept. A changed configuration
 * selects another variant; sessions never change. Buffers of the feeds are reused: a run ends before the next
 * micro-batch is packed.
 */
export class Sessions {
  readonly #ort: typeof Ort;
  readonly #model: PolicyModel;
  readonly batch: number;
  readonly slots: number;
  readonly #threads: number;
  readonly #made = new Map<string, Promise<Ort.InferenceSession>>();
  readonly #arrays = new Map<string, Float32Array | Int32Array | Uint8Array>();

  constructor(ort: typeof Ort, model: PolicyModel, batch: number, slots: number, threads: number) {
    this.#ort = ort;
    this.#model = model;
    this.batch = batch;
    this.slots = slots;
    this.#threads = threads;
  }

  #session(key: string, graph: () => Graph): Promise<Ort.InferenceSession> {
    let s = this.#made.get(key);
    if (!s) {
      s = this.#ort.InferenceSession.create(graph().toModel(key), {
        intraOpNumThreads: this.#threads,
        interOpNumThreads: 1,
        logSeverityLevel: 3,
      });
      this.#made.set(key, s);
    }
    return s;
  }
  score(feeds: Feeds): Promise<Ort.InferenceSession.OnnxValueMapType> {
    return this.#run('score', () => scoreGraph(this.#model, this.batch, this.slots), feeds);
  }
  grad(v: GradVariant, feeds: Feeds): Promise<Ort.InferenceSession.OnnxValueMapType> {
    return this.#run(
      `grad-${v.algorithm}${v.tis ? '-tis' : ''}${v.fresh ? '-fresh' : ''}${v.reference ? '-ref' : ''}`,
      () => gradGraph(this.#model, this.batch, this.slots, v),
      feeds,
    );
  }
  read(feeds: Feeds): Promise<Ort.InferenceSession.OnnxValueMapType> {
    return this.#run('read', () => readGraph(this.#model, this.batch, READ_WORDS, READ_CELLS), feeds);
  }
  spell(feeds: Feeds): Promise<Ort.InferenceSession.OnnxValueMapType> {
    return this.#run('spell', () => spellGraph(this.#model, this.batch), feeds);
  }
  /** Runs the reader over `batch` screens. */
  look(feeds: Feeds): Promise<Ort.InferenceSession.OnnxValueMapType> {
    return this.#run('look', () => towerGraph(this.#model, this.batch), feeds);
  }
  adam(feeds: Feeds): Promise<Ort.InferenceSession.OnnxValueMapType> {
    return this.#run('adam', () => adamGraph(this.#model.layout.total), feeds);
  }
  async #run(key: string, graph: () => Graph, feeds: Feeds): Promise<Ort.InferenceSession.OnnxValueMapType> {
    const s = await this.#session(key, graph);
    return s.run(Object.fromEntries(s.inputNames.map((n) => [n, feeds[n]!])));
  }

  floats(data: Float32Array, dims: readonly number[] = [data.length]): Ort.Tensor {
    return new this.#ort.Tensor('float32', data, dims);
  }
  #buffer<T extends Float32Array | Int32Array | Uint8Array>(name: string, make: () => T): T {
    let a = this.#arrays.get(name);
    if (!a) {
      a = make();
      this.#arrays.set(name, a);
    }
    return a.fill(0) as T;
  }

  /** The inputs of at most `batch` states; missing ones stay zero and have no weight. */
  pack(states: readonly PackedState[], lossParams: Readonly<Record<(typeof LOSS_PARAMS)[number], number>>): Feeds {
    const { batch: b, slots: k } = this,
      model = this.#model,
      shape = inputShapes(model.spec, b),
      per = k * TOKENS;
    if (states.length > b) throw new RangeError(`${states.length} states do not fit a micro-batch of ${b}`);
    const size = (s: readonly number[]): number => s.reduce((x, y) => x * y, 1);
    const obs = this.#buffer('obs', () => new Uint8Array(size(shape.obs)));
    const instruction = this.#buffer('instruction', () => new Int32Array(size(shape.instruction))),
      perState = instruction.length / b;
    const history = this.#buffer('history', () => new Int32Array(size(shape.history)));
    const choices = this.#buffer('choices', () => new Int32Array(b * per));
    const names = ['mask', 'policyWeight', 'imitationWeight', 'rollout', 'corrected', 'old', 'ref'] as const;
    const token = recordOf(names, (n) => this.#buffer(n, () => new Float32Array(b * per)));
    const advantage = this.#buffer('advantage', () => new Float32Array(b * k)),
      entropyWeight = this.#buffer('entropyWeight', () => new Float32Array(b));
    states.forEach((p, i) => {
      obs.set(p.state.obs, i * (obs.length / b));
      // Spellings are for finding words, not for the network.
      instruction.set(p.state.instruction.subarray(0, perState), i * perState);
      history.set(p.state.history, i * (history.length / b));
      entropyWeight[i] = p.entropyWeight;
      p.slots.forEach((s, j) => {
        const at = i * per + j * TOKENS;
        choices.set(s.ids, at);
        token.mask.fill(1, at, at + s.tokens);
        token.policyWeight.set(s.policy, at);
        token.imitationWeight.set(s.imitation, at);
        token.old.set(s.old, at);
        token.ref.set(s.ref, at);
        if (s.rollout) {
          token.rollout.set(s.rollout, at);
          token.corrected.fill(1, at, at + s.tokens);
        }
        advantage[i * k + j] = s.advantage;
      });
    });
    const { Tensor } = this.#ort;
    return {
      obs: new Tensor('uint8', obs, shape.obs),
      instruction: new Tensor('int32', instruction, shape.instruction),
      history: new Tensor('int32', history, shape.history),
      choices: new Tensor('int32', choices, [b, per]),
      ...recordOf(names, (n) => this.floats(token[n], [b, k, TOKENS])),
      advantage: this.floats(advantage, [b, k]),
      entropyWeight: this.floats(entropyWeight),
      lossParams: this.floats(Float32Array.from(LOSS_PARAMS, (n) => lossParams[n])),
      temperature: this.floats(Float32Array.of(lossParams.temperature)),
    };
  }

  /** Screens alone, for the reader. */
  packScreens(screens: readonly Uint8Array[]): Feeds {
    const shape = inputShapes(this.#model.spec, this.batch).obs,
      obs = this.#buffer('obs', () => new Uint8Array(shape.reduce((x, y) => x * y, 1)));
    screens.forEach((s, i) => obs.set(s, i * s.length));
    return { obs: new this.#ort.Tensor('uint8', obs, shape) };
  }

  /** Inputs from the perception of at most `batch` states; missing ones stay zero. */
  packPerceived(seen: readonly Perceived[]): Feeds {
    const shape = foundShapes(this.#model, this.batch);
    return recordOf(['features', 'found', 'facts'] as const, (k) => {
      const data = this.#buffer(k, () => new Float32Array(shape[k].reduce((x, y) => x * y, 1))),
        per = data.length / this.batch;
      seen.forEach((s, i) => data.set(s[k], i * per));
      return this.floats(data, shape[k]);
    });
  }

  /** The inputs of at most `batch` reader's lessons; `scale` multiplies every weight. */
  packSpelling(lessons: readonly SpellingLesson[], scale: number): Feeds {
    const n = lessons[0]!.targets.length,
      targets = this.#buffer('columns', () => new Int32Array(this.batch * n)),
      weight = this.#buffer('columnWeight', () => new Float32Array(this.batch * n));
    lessons.forEach((l, i) => {
      targets.set(l.targets, i * n);
      l.weight.forEach((w, k) => {
        weight[i * n + k] = w * scale;
      });
    });
    return {
      ...this.packScreens(lessons.map((l) => l.obs)),
      targets: new this.#ort.Tensor('int32', targets, [targets.length]),
      weight: this.floats(weight),
    };
  }

  /** The inputs of at most `batch` lessons; `scale` multiplies every weight. */
  packLessons(lessons: readonly Lesson[], scale: number): Feeds {
    const b = this.batch,
      shape = inputShapes(this.#model.spec, b).obs,
      { Tensor } = this.#ort;
    const obs = this.#buffer('obs', () => new Uint8Array(shape.reduce((x, y) => x * y, 1)));
    const buckets = this.#buffer('buckets', () => new Int32Array(b * READ_WORDS)),
      targets = this.#buffer('targets', () => new Int32Array(b * READ_WORDS * READ_CELLS));
    const weight = this.#buffer('weight', () => new Float32Array(b * READ_WORDS * READ_CELLS));
    lessons.forEach((l, i) => {
      obs.set(l.obs, i * (obs.length / b));
      buckets.set(l.buckets, i * READ_WORDS);
      targets.set(l.targets, i * READ_WORDS * READ_CELLS);
      l.weight.forEach((w, k) => {
        weight[i * READ_WORDS * READ_CELLS + k] = w * scale;
      });
    });
    return {
      obs: new Tensor('uint8', obs, shape),
      buckets: new Tensor('int32', buckets, [b, READ_WORDS]),
      targets: new Tensor('int32', targets, [b, READ_WORDS * READ_CELLS]),
      weight: this.floats(weight, [b * READ_WORDS, READ_CELLS]),
    };
  }

  /** Frees the native sessions; needed before the process may exit. */
  async release(): Promise<void> {
    const all = await Promise.allSettled(this.#made.values());
    this.#made.clear();
    for (const s of all) if (s.status === 'fulfilled') await s.value.release();
  }
}
