/** Where a frame lies: in which pack file, where in it, and how long it is. */
export interface Place {
  /** Number of the pack, from 1. */
  readonly pack: number;
  /** Byte of the file at which the frame's record begins. */
  readonly at: number;
  /** Bytes of the frame without the head of its record. */
  readonly bytes: number;
}

/** Words of a slot: 12 bytes of the name, pack, place, bytes. A slot without a pack is free, or, with bytes, was used. */
const WORDS = 6,
  PARTS = 256,
  FIRST = 8;

/**
 * Places of millions of frames by name, at 32 to 48 bytes each: open addressing in words, in parts, so that none takes
 * long to grow. Twelve bytes of a name tell frames apart well enough: the record has all of it. Slots are chosen by a
 * number of this process, or names could be made that all want the same.
 */
export class FrameTable {
  readonly #parts: Uint32Array[] = [];
  /** Slots in use, freed ones included. */
  readonly #used = new Uint32Array(PARTS);
  readonly #seed = (Math.random() * 2 ** 32) >>> 0;
  #size = 0;

  constructor() {
    for (let i = 0; i < PARTS; i++) this.#parts.push(new Uint32Array(FIRST * WORDS));
  }
  get size(): number {
    return this.#size;
  }
  /** Bytes that the slots take, free ones included. */
  get allocated(): number {
    return this.#parts.reduce((sum, part) => sum + part.byteLength, 0);
  }

  /** `name`: 32 bytes. */
  get(name: Buffer): Place | undefined {
    const hash = this.#hash(name),
      part = this.#parts[hash & (PARTS - 1)]!,
      at = find(part, hash, name);
    return at < 0 ? undefined : placeAt(part, at);
  }
  /** Gives the place it had before. */
  set(name: Buffer, { pack, at, bytes }: Place): Place | undefined {
    const hash = this.#hash(name),
      p = hash & (PARTS - 1);
    let part = this.#parts[p]!,
      slot = find(part, hash, name);
    const before = slot < 0 ? undefined : placeAt(part, slot);
    if (!before) {
      if (++this.#used[p]! * 4 * WORDS > part.length * 3) part = this.#grown(p);
      slot = free(part, hash);
      part[slot] = name.readUInt32LE(0);
      part[slot + 1] = name.readUInt32LE(4);
      part[slot + 2] = name.readUInt32LE(8);
      this.#size++;
    }
    part[slot + 3] = pack;
    part[slot + 4] = at;
    part[slot + 5] = bytes;
    return before;
  }
  delete(name: Buffer): void {
    const hash = this.#hash(name),
      part = this.#parts[hash & (PARTS - 1)]!,
      at = find(part, hash, name);
    if (at < 0) return;
    part[at + 3] = 0;
    this.#size--;
  }

  #grown(p: number): Uint32Array {
    const old = this.#parts[p]!,
      part = new Uint32Array(Math.ceil((old.length / WORDS) * 1.5) * WORDS);
    let used = 1;
    for (let i = 0; i < old.length; i += WORDS) {
      if (old[i + 3] === 0) continue;
      const at = free(part, this.#mixed(old[i + 1]!, old[i + 2]!));
      for (let w = 0; w < WORDS; w++) part[at + w] = old[i + w]!;
      used++;
    }
    this.#used[p] = used;
    return (this.#parts[p] = part);
  }
  #hash(name: Buffer): number {
    return this.#mixed(name.readUInt32LE(4), name.readUInt32LE(8));
  }
  #mixed(b: number, c: number): number {
    let h = Math.imul(b ^ this.#seed, 0x9e3779b1);
    h = Math.imul(h ^ (h >>> 15) ^ c, 0x85ebca6b);
    h = Math.imul(h ^ (h >>> 13) ^ this.#seed, 0xc2b2ae35);
    return (h ^ (h >>> 16)) >>> 0;
  }
}
const first = (part: Uint32Array, hash: number): number => ((hash >>> 8) % (part.length / WORDS)) * WORDS;
const placeAt = (part: Uint32Array, at: number): Place => ({
  pack: part[at + 3]!,
  at: part[at + 4]!,
  bytes: part[at + 5]!,
});
function find(part: Uint32Array, hash: number, name: Buffer): number {
  const a = name.readUInt32LE(0),
    b = name.readUInt32LE(4),
    c = name.readUInt32LE(8);
  for (let i = first(part, hash); part[i + 3] !== 0 || part[i + 5] !== 0; i = (i + WORDS) % part.length)
    if (part[i] === a && part[i + 1] === b && part[i + 2] === c && part[i + 3] !== 0) return i;
  return -1;
}
/** A slot that was never used: a search ends only there. */
function free(part: Uint32Array, hash: number): number {
  let i = first(part, hash);
  while (part[i + 3] !== 0 || part[i + 5] !== 0) i = (i + WORDS) % part.length;
  return i;
}
