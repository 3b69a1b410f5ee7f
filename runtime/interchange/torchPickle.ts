import { Unusable } from './types.js';

/** Numbers of one tensor; those of 64 bits must fit into 32. */
export type Tensor = Float32Array | Int32Array;

/** Operations of a pickle by the names of Python's pickletools: all that plain tensors take. */
export const OP = {
  PROTO: 0x80,
  FRAME: 0x95,
  STOP: 0x2e,
  MARK: 0x28,
  NONE: 0x4e,
  NEWTRUE: 0x88,
  NEWFALSE: 0x89,
  BININT1: 0x4b,
  BININT2: 0x4d,
  BININT: 0x4a,
  LONG1: 0x8a,
  BINUNICODE: 0x58,
  SHORT_BINUNICODE: 0x8c,
  GLOBAL: 0x63,
  STACK_GLOBAL: 0x93,
  EMPTY_DICT: 0x7d,
  EMPTY_TUPLE: 0x29,
  TUPLE1: 0x85,
  TUPLE2: 0x86,
  TUPLE3: 0x87,
  TUPLE: 0x74,
  BINPERSID: 0x51,
  REDUCE: 0x52,
  SETITEM: 0x73,
  SETITEMS: 0x75,
  BINPUT: 0x71,
  LONG_BINPUT: 0x72,
  MEMOIZE: 0x94,
  BINGET: 0x68,
  LONG_BINGET: 0x6a,
} as const;

/** Numbers of a tensor, as the pickle names them. */
export interface Storage {
  readonly kind: 'FloatStorage' | 'LongStorage' | 'IntStorage';
  /** File of the archive. */
  readonly key: string;
  readonly length: number;
}
/** Names that a pickle may use: these build tensors, and stand for themselves here. */
const GLOBALS = [
  'torch._utils _rebuild_tensor_v2',
  'torch FloatStorage',
  'torch LongStorage',
  'torch IntStorage',
  'collections OrderedDict',
] as const;
type Global = (typeof GLOBALS)[number];

class Named {
  readonly name: Global;
  constructor(name: Global) {
    this.name = name;
  }
}
class Stored {
  readonly storage: Storage;
  constructor(storage: Storage) {
    this.storage = storage;
  }
}
type Value = string | number | boolean | null | Named | Stored | Tensor | readonly Value[] | Map<Value, Value>;
const MARK = Symbol('mark');
/** Operations of one file; a dictionary of two tensors takes 60. */
const MOST_STEPS = 2000;

/** A pickle of a dictionary of tensors, step by step (protocols 2 to 4). */
export class TensorPickle {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #numbers: (s: Storage) => Tensor;
  readonly #stack: (Value | typeof MARK)[] = [];
  readonly #memo = new Map<number, Value>();
  /** Tensors by the file of their numbers. */
  readonly #made = new Map<string, Tensor>();
  #at = 0;

  constructor(bytes: Uint8Array, numbers: (s: Storage) => Tensor) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#numbers = numbers;
  }

  /** Throws Unusable for anything but a dictionary of names and tensors of one dimension. */
  dictionary(): ReadonlyMap<string, Tensor> {
    const made = this.#run();
    if (!(made instanceof Map)) throw new Unusable('is no dictionary');
    const out = new Map<string, Tensor>();
    for (const [k, v] of made) {
      if (typeof k !== 'string' || !(v instanceof Float32Array || v instanceof Int32Array))
        throw new Unusable('is no dictionary of tensors');
      out.set(k, v);
    }
    return out;
  }

  #run(): Value {
    for (let n = 0; n < MOST_STEPS; n++) {
      const op = this.#byte();
      if (op === OP.STOP) return this.#pop();
      if (!this.#constant(op) && !this.#structure(op)) throw new Unusable(`has more than tensors (opcode ${op})`);
    }
    throw new Unusable('is no dictionary of a few tensors');
  }

  /** Opcodes that put one value onto the stack. */
  #constant(op: number): boolean {
    const s = this.#stack;
    switch (op) {
      case OP.NONE:
        s.push(null);
        return true;
      case OP.NEWTRUE:
      case OP.NEWFALSE:
        s.push(op === OP.NEWTRUE);
        return true;
      case OP.BININT1:
        s.push(this.#byte());
        return true;
      case OP.BININT2:
        s.push(this.#number(2));
        return true;
      case OP.BININT:
        s.push(this.#number(4) | 0);
        return true;
      case OP.LONG1:
        s.push(this.#long());
        return true;
      case OP.BINUNICODE:
        s.push(this.#text(this.#number(4)));
        return true;
      case OP.SHORT_BINUNICODE:
        s.push(this.#text(this.#byte()));
        return true;
      case OP.GLOBAL:
        s.push(named(this.#line(), this.#line()));
        return true;
      case OP.EMPTY_DICT:
        s.push(new Map());
        return true;
      case OP.EMPTY_TUPLE:
        s.push([]);
        return true;
      case OP.MARK:
        s.push(MARK);
        return true;
      default:
        return this.#remembered(op);
    }
  }
  #remembered(op: number): boolean {
    switch (op) {
      case OP.BINPUT:
      case OP.LONG_BINPUT:
        this.#memo.set(this.#number(op === OP.BINPUT ? 1 : 4), this.#top());
        return true;
      case OP.MEMOIZE:
        this.#memo.set(this.#memo.size, this.#top());
        return true;
      case OP.BINGET:
      case OP.LONG_BINGET: {
        const value = this.#memo.get(this.#number(op === OP.BINGET ? 1 : 4));
        if (value === undefined) throw new Unusable('refers to what it does not have');
        this.#stack.push(value);
        return true;
      }
      default:
        return false;
    }
  }
  /** Opcodes that make one value of several. */
  #structure(op: number): boolean {
    const s = this.#stack;
    switch (op) {
      // Protocol, and the length of what follows: neither says anything here.
      case OP.PROTO:
        this.#number(1);
        return true;
      case OP.FRAME:
        this.#number(4);
        this.#number(4);
        return true;
      case OP.TUPLE1:
      case OP.TUPLE2:
      case OP.TUPLE3: {
        const n = op - OP.TUPLE1 + 1,
          values = Array.from({ length: n }, () => this.#pop()).reverse();
        s.push(values);
        return true;
      }
      case OP.TUPLE:
        s.push(this.#marked());
        return true;
      case OP.STACK_GLOBAL: {
        const name = this.#pop(),
          module = this.#pop();
        if (typeof module !== 'string' || typeof name !== 'string') throw new Unusable('is no pickle');
        s.push(named(module, name));
        return true;
      }
      case OP.BINPERSID:
        s.push(storedOf(this.#pop()));
        return true;
      case OP.REDUCE: {
        const args = this.#pop(),
          made = this.#pop();
        s.push(this.#call(made, args));
        return true;
      }
      case OP.SETITEM: {
        const value = this.#pop(),
          key = this.#pop();
        this.#dictionary().set(key, value);
        return true;
      }
      case OP.SETITEMS: {
        const values = this.#marked(),
          into = this.#dictionary();
        for (let i = 0; i + 1 < values.length; i += 2) into.set(values[i]!, values[i + 1]!);
        return true;
      }
      default:
        return false;
    }
  }

  #call(f: Value, args: Value): Value {
    if (!(f instanceof Named) || !Array.isArray(args)) throw new Unusable('calls what makes no tensor');
    if (f.name === 'collections OrderedDict') return new Map();
    if (f.name !== 'torch._utils _rebuild_tensor_v2') throw new Unusable('calls what makes no tensor');
    const [stored, offset, size, stride] = args as readonly Value[];
    if (
      !(stored instanceof Stored) ||
      offset !== 0 ||
      !Array.isArray(size) ||
      size.length !== 1 ||
      !Array.isArray(stride)
    )
      throw new Unusable('has a tensor of another shape');
    const [length] = size as readonly Value[],
      [step] = stride as readonly Value[];
    // A part of another tensor would bring all of that along.
    if (length !== stored.storage.length || (length > 1 && step !== 1))
      throw new Unusable('has a tensor of another shape');
    // Named again, it is the same one.
    const known = this.#made.get(stored.storage.key);
    if (known) return known;
    const made = this.#numbers(stored.storage);
    this.#made.set(stored.storage.key, made);
    return made;
  }

  #byte(): number {
    return this.#number(1);
  }
  #number(bytes: 1 | 2 | 4): number {
    const at = this.#at;
    if (at + bytes > this.#bytes.length) throw new Unusable('is cut off');
    this.#at += bytes;
    return bytes === 1
      ? this.#bytes[at]!
      : bytes === 2
        ? this.#view.getUint16(at, true)
        : this.#view.getUint32(at, true);
  }
  /** A whole number of up to four bytes. */
  #long(): number {
    const n = this.#byte();
    if (n > 4) throw new Unusable('has a number beyond 32 bits');
    let out = 0;
    for (let i = 0; i < n; i++) out += this.#byte() * 2 ** (8 * i);
    return n > 0 && out >= 2 ** (8 * n - 1) ? out - 2 ** (8 * n) : out;
  }
  #text(length: number): string {
    const at = this.#at;
    if (at + length > this.#bytes.length) throw new Unusable('is cut off');
    this.#at += length;
    return new TextDecoder().decode(this.#bytes.subarray(at, at + length));
  }
  #line(): string {
    const end = this.#bytes.indexOf(10, this.#at);
    if (end < 0) throw new Unusable('is cut off');
    const line = this.#text(end - this.#at);
    this.#at++;
    return line;
  }
  #top(): Value {
    const value = this.#stack.at(-1);
    if (value === undefined || value === MARK) throw new Unusable('is no pickle');
    return value;
  }
  #pop(): Value {
    const value = this.#top();
    this.#stack.pop();
    return value;
  }
  #marked(): readonly Value[] {
    const at = this.#stack.lastIndexOf(MARK);
    if (at < 0) throw new Unusable('is no pickle');
    return this.#stack.splice(at).slice(1) as Value[];
  }
  #dictionary(): Map<Value, Value> {
    const value = this.#top();
    if (!(value instanceof Map)) throw new Unusable('is no dictionary of tensors');
    return value;
  }
}

function named(module: string, name: string): Named {
  const found = GLOBALS.find((g) => g === `${module} ${name}`);
  if (!found) throw new Unusable(`names ${module.slice(0, 40)}.${name.slice(0, 40)}, which makes no tensor`);
  return new Named(found);
}
function storedOf(value: Value): Stored {
  const [word, kind, key, , length] = Array.isArray(value) ? (value as readonly Value[]) : [];
  const name = kind instanceof Named ? kind.name.split(' ')[1] : undefined;
  if (
    word !== 'storage' ||
    (name !== 'FloatStorage' && name !== 'LongStorage' && name !== 'IntStorage') ||
    typeof key !== 'string' ||
    !/^\d{1,6}$/.test(key) ||
    typeof length !== 'number' ||
    !(length >= 0)
  )
    throw new Unusable('has a tensor of another kind of numbers');
  return new Stored({ kind: name, key, length });
}
