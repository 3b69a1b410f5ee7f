/** The steps of a trajectory that has ended, in one value: some ten bytes a step. */
import type { SqlValue } from 'sql.js';

export interface PackedStep {
  readonly index: number;
  /** Position of the step's record in the journal. */
  readonly position: number;
  readonly entropy: number | undefined;
  readonly version: number | undefined;
}

const HAS_ENTROPY = 1,
  HAS_VERSION = 2,
  JUMPS = 4;

/**
 * From rows of index, position, entropy and version, in order. A step is a byte that says what follows; its index, where
 * it is not the next one; how far its record lies behind the one before; its entropy in single precision; its version
 * against the one before. Whole numbers are 7 bits a byte, lowest first, the sign in the lowest bit.
 */
export function packSteps(rows: readonly (readonly SqlValue[])[]): Uint8Array {
  const out: number[] = [],
    float = new DataView(new ArrayBuffer(4));
  const put = (given: number): void => {
    // The index may be a stranger's, and an infinite number has no last byte.
    const signed = Number.isSafeInteger(given) ? given : 0;
    let n = signed < 0 ? -2 * signed - 1 : 2 * signed;
    for (; n >= 128; n = Math.floor(n / 128)) out.push((n % 128) + 128);
    out.push(n);
  };
  let last = { index: -1, position: 0, version: 0 };
  for (const [index, position, entropy, version] of rows) {
    const now = { index: Number(index), position: Number(position), version: Number(version ?? last.version) },
      jumps = now.index !== last.index + 1;
    out.push(
      (typeof entropy === 'number' ? HAS_ENTROPY : 0) |
        (typeof version === 'number' ? HAS_VERSION : 0) |
        (jumps ? JUMPS : 0),
    );
    if (jumps) put(now.index - last.index);
    put(now.position - last.position);
    if (typeof entropy === 'number') {
      float.setFloat32(0, entropy, true);
      for (let i = 0; i < 4; i++) out.push(float.getUint8(i));
    }
    if (typeof version === 'number') put(now.version - last.version);
    last = now;
  }
  return Uint8Array.from(out);
}

/** The steps of a packed row. The index may be a stranger's: damaged bytes yield some numbers, and an end. */
export function unpackSteps(packed: unknown): PackedStep[] {
  const bytes = packed instanceof Uint8Array ? packed : new Uint8Array(),
    view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    out: PackedStep[] = [];
  let at = 0;
  const take = (): number => {
    let n = 0,
      scale = 1,
      byte;
    do {
      byte = bytes[at++] ?? 0;
      n += (byte % 128) * scale;
      scale *= 128;
    } while (byte >= 128);
    return n % 2 === 1 ? -(n + 1) / 2 : n / 2;
  };
  let index = -1,
    position = 0,
    version = 0;
  while (at < bytes.length) {
    const what = bytes[at++]!;
    index += what & JUMPS ? take() : 1;
    position += take();
    let entropy: number | undefined;
    if (what & HAS_ENTROPY && at + 4 <= bytes.length) entropy = view.getFloat32(at, true);
    if (what & HAS_ENTROPY) at += 4;
    if (what & HAS_VERSION) version += take();
    out.push({ index, position, entropy, version: what & HAS_VERSION ? version : undefined });
  }
  return out;
}
