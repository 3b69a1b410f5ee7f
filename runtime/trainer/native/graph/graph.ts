import { encodeModel, type AttributeValue, type DType, type OnnxInitializer } from './onnxProto.js';

/**
 * A value of a graph under construction. Every shape is static, which spares ORT shape arithmetic and lets it plan
 * memory.
 */
export interface Tensor {
  readonly graph: Graph;
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
}

/**
 * Vector-Jacobian product: gradients of the outputs in, gradients of the inputs out (undefined = none flows). Unused
 * nodes that it emits are pruned.
 */
export type Vjp = (grads: readonly Tensor[]) => readonly (Tensor | undefined)[];

export interface GraphNode {
  readonly op: string;
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  readonly attributes: Readonly<Record<string, AttributeValue>>;
  readonly vjp: Vjp | undefined;
  /**
   * The tensors that the gradients of `vjp` belong to; differs from `inputs` where an operator hides intermediate nodes
   * (conv3).
   */
  readonly sources: readonly Tensor[];
  /** Multiply-adds x 2 of a matrix product; 0 for everything else. */
  readonly flops: number;
}
/** Gradient of a node with one output: those of its `sources` from that of the output. */
export interface NodeGradient {
  readonly vjp?: (grad: Tensor) => readonly (Tensor | undefined)[];
  readonly sources?: readonly Tensor[];
}
type Data = Float32Array | Float64Array | Int32Array | BigInt64Array | Uint8Array;

export const sizeOf = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

/**
 * Collects nodes in order and writes the live ones as an ONNX model. `float` is the type of all real values: f64 only
 * for exact gradient checks.
 */
export class Graph {
  readonly float: 'f32' | 'f64';
  readonly nodes: GraphNode[] = [];
  readonly #inputs: Tensor[] = [];
  readonly #outputs: { from: Tensor; name: string }[] = [];
  readonly #initializers = new Map<Tensor, OnnxInitializer>();
  readonly #scalars = new Map<string, Tensor>();
  #count = 0;

  constructor(float: 'f32' | 'f64' = 'f32') {
    this.float = float;
  }

  input(name: string, dtype: DType, shape: readonly number[]): Tensor {
    const t: Tensor = { graph: this, name, dtype, shape };
    this.#inputs.push(t);
    return t;
  }
  output(name: string, from: Tensor): void {
    this.#outputs.push({ from, name });
  }

  node(
    op: string,
    inputs: readonly Tensor[],
    outputs: readonly { dtype?: DType; shape: readonly number[] }[],
    attributes: Readonly<Record<string, AttributeValue>> = {},
    vjp?: Vjp,
    flops = 0,
    sources: readonly Tensor[] = inputs,
  ): readonly Tensor[] {
    const made = outputs.map((o): Tensor => ({
      graph: this,
      name: `t${this.#count++}`,
      dtype: o.dtype ?? this.float,
      shape: o.shape,
    }));
    this.nodes.push({ op, inputs, outputs: made, attributes, vjp, flops, sources });
    return made;
  }
  /** A node with one output. */
  node1(
    op: string,
    inputs: readonly Tensor[],
    shape: readonly number[],
    o: NodeGradient & {
      dtype?: DType;
      attributes?: Readonly<Record<string, AttributeValue>>;
      flops?: number;
    } = {},
  ): Tensor {
    const vjp = o.vjp;
    return this.node(
      op,
      inputs,
      [{ shape, dtype: o.dtype }],
      o.attributes,
      vjp ? (gs) => vjp(gs[0]!) : undefined,
      o.flops,
      o.sources,
    )[0]!;
  }

  constant(data: Data, shape: readonly number[], dtype: DType): Tensor {
    const t: Tensor = { graph: this, name: `c${this.#count++}`, dtype, shape };
    this.#initializers.set(t, {
      name: t.name,
      dtype,
      shape,
      bytes: new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
    });
    return t;
  }
  /** Real constants in the graph's float type. */
  floats(values: ArrayLike<number>, shape: readonly number[]): Tensor {
    return this.constant(
      this.float === 'f32' ? Float32Array.from(values) : Float64Array.from(values),
      shape,
      this.float,
    );
  }
  ints(values: readonly number[], shape: readonly number[] = [values.length]): Tensor {
    const key = `i${shape.join(',')}:${values.length < 16 ? values.join(',') : `#${this.#count}`}`;
    let t = this.#scalars.get(key);
    if (!t) {
      t = this.constant(BigInt64Array.from(values, BigInt), shape, 'i64');
      this.#scalars.set(key, t);
    }
    return t;
  }
  scalar(v: number): Tensor {
    const key = `f${v}`;
    let t = this.#scalars.get(key);
    if (!t) {
      t = this.floats([v], []);
      this.#scalars.set(key, t);
    }
    return t;
  }

  /** Nodes that some output depends on, in order. */
  live(): readonly GraphNode[] {
    const wanted = new Set(this.#outputs.map((o) => o.from));
    const keep: GraphNode[] = [];
    for (let i = this.nodes.length - 1; i >= 0; i--) {
      const n = this.nodes[i]!;
      if (!n.outputs.some((o) => wanted.has(o))) continue;
      keep.push(n);
      for (const x of n.inputs) wanted.add(x);
    }
    return keep.reverse();
  }
  /**
   * Floating-point operations of all matrix products that the graph executes, including those with the zeros of
   * block-Toeplitz matrices.
   */
  gemmFlops(): number {
    return this.live().reduce((s, n) => s + n.flops, 0);
  }

  toModel(name: string, metadata: Readonly<Record<string, string>> = {}): Uint8Array {
    const nodes = this.live();
    const used = new Set<Tensor>(nodes.flatMap((n) => n.inputs));
    const inputs = this.#inputs.filter((i) => used.has(i) || this.#outputs.some((o) => o.from === i));
    return encodeModel({
      name,
      metadata,
      nodes: [
        ...nodes.map((n) => ({
          op: n.op,
          inputs: n.inputs.map((i) => i.name),
          outputs: n.outputs.map((o) => o.name),
          attributes: n.attributes,
        })),
        ...this.#outputs.map((o) => ({ op: 'Identity', inputs: [o.from.name], outputs: [o.name], attributes: {} })),
      ],
      initializers: [...this.#initializers]
        .filter(([t]) => used.has(t) || this.#outputs.some((o) => o.from === t))
        .map(([, i]) => i),
      inputs,
      outputs: this.#outputs.map((o) => ({ name: o.name, dtype: o.from.dtype, shape: o.from.shape })),
    });
  }
}
