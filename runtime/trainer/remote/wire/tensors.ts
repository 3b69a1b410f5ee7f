import { LIMITS, malformed, unread, type WireTensor } from './types.js';

/** Arrays as the little-endian bytes that protobuf messages carry, and back. Machines here are little-endian too. */

export const DTYPES = { float32: 1, int64: 2, int32: 3, bfloat16: 4 } as const;
type Dtype = keyof typeof DTYPES;
const BYTES: Record<Dtype, number> = { float32: 4, int64: 8, int32: 4, bfloat16: 2 };

export function dtypeOf(wire: unknown): Dtype {
  const found = (Object.keys(DTYPES) as Dtype[]).find((k) => DTYPES[k] === wire);
  if (!found) throw unread(`a tensor of an unknown type (${String(wire)})`);
  return found;
}

const bytesOf = (a: ArrayBufferView): Uint8Array => new Uint8Array(a.buffer, a.byteOffset, a.byteLength);

export const floatBytes = (a: ArrayLike<number>): Uint8Array => bytesOf(Float32Array.from(a));
/** Throws RangeError on what is no int32. */
export function int32Bytes(a: ArrayLike<number>): Uint8Array {
  const out = Int32Array.from(a);
  for (let i = 0; i < out.length; i++)
    if (out[i] !== a[i]) throw new RangeError(`${a[i]} is no token: tokens are whole 32-bit numbers`);
  return bytesOf(out);
}
/** Throws RangeError on what is no whole number. Two halves each: ten times as fast as through BigInt. */
export function int64Bytes(a: ArrayLike<number>): Uint8Array {
  const out = new Int32Array(2 * a.length);
  for (let i = 0; i < a.length; i++) {
    const x = a[i]!;
    if (!Number.isSafeInteger(x)) throw new RangeError(`${x} is no whole number`);
    const high = Math.floor(x / 2 ** 32);
    out[2 * i] = x - high * 2 ** 32;
    out[2 * i + 1] = high;
  }
  return bytesOf(out);
}

/** Numbers from little-endian bytes: f32 for floats, f64 for integers (below 2^53). */
export function numbers(bytes: Uint8Array, dtype: Dtype): Float32Array | Float64Array {
  const size = BYTES[dtype],
    n = bytes.length / size;
  if (!Number.isInteger(n)) throw malformed(`${bytes.length} bytes are no whole number of ${dtype} values`);
  if (n > LIMITS.elements) throw malformed(`a tensor of ${n} values (at most ${LIMITS.elements})`);
  // A copy: the bytes lie at any offset of their message (and `slice` of a Buffer copies nothing).
  const { buffer } = new Uint8Array(bytes);
  switch (dtype) {
    case 'float32':
      return new Float32Array(buffer);
    case 'int32':
      return Float64Array.from(new Int32Array(buffer));
    case 'bfloat16': {
      // The upper half of an f32.
      const wide = Uint32Array.from(new Uint16Array(buffer), (x) => x << 16);
      return new Float32Array(wide.buffer);
    }
    case 'int64':
      return Float64Array.from(new BigInt64Array(buffer), exact);
  }
}
function exact(x: bigint): number {
  const n = Number(x);
  if (!Number.isSafeInteger(n)) throw malformed(`the number ${x} is beyond 2^53`);
  return n;
}
export const int32s = (bytes: Uint8Array): Int32Array => Int32Array.from(numbers(bytes, 'int32'));

/** A tensor whose shape holds its values; without one it is a row. */
export function tensor(
  dtype: WireTensor['dtype'],
  data: Float32Array | Float64Array,
  shape: readonly number[] | undefined,
): WireTensor {
  if (shape === undefined) return { dtype, data, shape: [data.length] };
  if (shape.length > LIMITS.dimensions) throw malformed(`a tensor of ${shape.length} dimensions`);
  const size = shape.reduce((a, b) => a * b, 1);
  if (shape.some((d) => !Number.isInteger(d) || d < 0) || size !== data.length)
    throw malformed(`a tensor of shape [${shape.join(', ')}] with ${data.length} values`);
  return { dtype, data, shape };
}
export const publicType = (d: Dtype): WireTensor['dtype'] => (d === 'int64' || d === 'int32' ? 'int64' : 'float32');

/** Bytes of one element. */
export const elementBytes = (d: Dtype): number => BYTES[d];
