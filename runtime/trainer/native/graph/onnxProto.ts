/**
 * Writes ONNX models: the few messages of onnx.proto we need, encoded by hand (protobuf wire format: varint, 32-bit,
 * length-delimited). Field numbers are those of onnx/onnx.proto3 (IR version 9).
 */
export type DType = 'f32' | 'f64' | 'i32' | 'i64' | 'u8' | 'bool';
export type AttributeValue = number | string | readonly number[] | { readonly float: number };
export interface OnnxNode {
  readonly op: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, AttributeValue>>;
}
export interface OnnxValue {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
}
export interface OnnxInitializer extends OnnxValue {
  readonly bytes: Uint8Array;
}
export interface OnnxModel {
  readonly name: string;
  readonly nodes: readonly OnnxNode[];
  readonly initializers: readonly OnnxInitializer[];
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Numbers of `TensorProto.DataType`. */
export const ELEMENT_TYPE: Readonly<Record<DType, number>> = { f32: 1, u8: 2, i32: 6, i64: 7, bool: 9, f64: 11 };
const IR_VERSION = 9;
const OPSET = 18;

class Writer {
  readonly #parts: Uint8Array[] = [];
  #size = 0;
  #push(b: Uint8Array): this {
    this.#parts.push(b);
    this.#size += b.length;
    return this;
  }
  #varint(v: number | bigint): this {
    const out: number[] = [];
    let x = BigInt.asUintN(64, BigInt(v));
    do {
      const low = Number(x & 0x7fn);
      x >>= 7n;
      out.push(x > 0n ? low | 0x80 : low);
    } while (x > 0n);
    return this.#push(Uint8Array.from(out));
  }
  int(field: number, v: number): this {
    return this.#varint(field * 8).#varint(v);
  }
  float(field: number, v: number): this {
    return this.#varint(field * 8 + 5).#push(new Uint8Array(Float32Array.of(v).buffer));
  }
  bytes(field: number, b: Uint8Array): this {
    return this.#varint(field * 8 + 2)
      .#varint(b.length)
      .#push(b);
  }
  text(field: number, s: string): this {
    return this.bytes(field, Buffer.from(s, 'utf8'));
  }
  message(field: number, fill: (w: Writer) => void): this {
    const w = new Writer();
    fill(w);
    return this.bytes(field, w.done());
  }
  done(): Uint8Array {
    return Buffer.concat(this.#parts, this.#size);
  }
}

function writeAttribute(w: Writer, name: string, v: AttributeValue): void {
  w.text(1, name);
  if (typeof v === 'number') w.int(3, v).int(20, 2);
  else if (typeof v === 'string') w.text(4, v).int(20, 3);
  else if ('float' in v) w.float(2, v.float).int(20, 1);
  else {
    for (const x of v) w.int(8, x);
    w.int(20, 7);
  }
}

function writeValue(w: Writer, v: OnnxValue): void {
  w.text(1, v.name).message(2, (t) =>
    t.message(1, (tensor) =>
      tensor.int(1, ELEMENT_TYPE[v.dtype]).message(2, (s) => {
        for (const d of v.shape) s.message(1, (dim) => dim.int(1, d));
      }),
    ),
  );
}

/** The model as the bytes of a `.onnx` file (opset 18, standard operators only). */
export function encodeModel(m: OnnxModel): Uint8Array {
  const w = new Writer().int(1, IR_VERSION).text(2, 'dart-studio');
  w.message(7, (g) => {
    for (const n of m.nodes)
      g.message(1, (x) => {
        for (const i of n.inputs) x.text(1, i);
        for (const o of n.outputs) x.text(2, o);
        x.text(4, n.op);
        for (const [k, v] of Object.entries(n.attributes)) x.message(5, (a) => writeAttribute(a, k, v));
      });
    g.text(2, m.name);
    for (const t of m.initializers)
      g.message(5, (x) => {
        for (const d of t.shape) x.int(1, d);
        x.int(2, ELEMENT_TYPE[t.dtype]).text(8, t.name).bytes(9, t.bytes);
      });
    for (const v of m.inputs) g.message(11, (x) => writeValue(x, v));
    for (const v of m.outputs) g.message(12, (x) => writeValue(x, v));
  });
  w.message(8, (o) => o.text(1, '').int(2, OPSET));
  for (const [k, v] of Object.entries(m.metadata ?? {})) w.message(14, (e) => e.text(1, k).text(2, v));
  return w.done();
}
