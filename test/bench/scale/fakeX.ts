import type { Size } from '../../../runtime/domain/index.js';

/** Opcodes of X11's core protocol that are answered. */
const INTERN_ATOM = 16,
  GET_PROPERTY = 20,
  QUERY_POINTER = 38,
  GET_INPUT_FOCUS = 43,
  QUERY_EXTENSION = 98,
  KEYBOARD_MAPPING = 101;
const XTEST = 140,
  ROOT = 0x100;

/** The least of an X server that drives no screen: a window manager is there, input is taken and reported. */
export class FakeX {
  readonly #screen: Size;
  readonly #send: (b: Buffer) => void;
  readonly #input: () => void;
  #held: Buffer = Buffer.alloc(0);
  #greeted = false;
  #seq = 0;

  constructor(screen: Size, send: (b: Buffer) => void, input: () => void) {
    this.#screen = screen;
    this.#send = send;
    this.#input = input;
  }

  receive(d: Buffer): void {
    let all = this.#held.length > 0 ? Buffer.concat([this.#held, d]) : d;
    if (!this.#greeted && all.length >= 12) {
      this.#greeted = true;
      this.#send(setup(this.#screen));
      all = all.subarray(12);
    }
    const replies: Buffer[] = [];
    while (this.#greeted && all.length >= 4) {
      const size = all.readUInt16LE(2) * 4;
      if (all.length < size) break;
      this.#seq = (this.#seq + 1) & 0xffff;
      const r = this.#request(all[0]!, all[1]!, all);
      if (r) {
        r.writeUInt16LE(this.#seq, 2);
        replies.push(r);
      }
      all = all.subarray(size);
    }
    this.#held = all;
    if (replies.length > 0) this.#send(Buffer.concat(replies));
  }

  #request(opcode: number, minor: number, b: Buffer): Buffer | undefined {
    switch (opcode) {
      case GET_INPUT_FOCUS:
      case QUERY_POINTER:
        return reply();
      case INTERN_ATOM: {
        const r = reply();
        r.writeUInt32LE(500, 8);
        return r;
      }
      case GET_PROPERTY: {
        const r = reply(4);
        r[1] = 32;
        r.writeUInt32LE(33, 8);
        r.writeUInt32LE(1, 16);
        return r;
      }
      case QUERY_EXTENSION: {
        const r = reply();
        r[8] = 1;
        r[9] = XTEST;
        return r;
      }
      case KEYBOARD_MAPPING: {
        const r = reply(b[5]! * 8);
        r[1] = 2;
        for (let i = 0; i < b[5]! * 2; i++) r.writeUInt32LE(0x20 + (i >> 1), 32 + i * 4);
        return r;
      }
      case XTEST:
        if (minor === 2) this.#input();
        return undefined;
      default:
        return undefined;
    }
  }
}

function reply(extra = 0): Buffer {
  const r = Buffer.alloc(32 + extra);
  r[0] = 1;
  r.writeUInt32LE(extra / 4, 4);
  return r;
}

function setup({ width, height }: Size): Buffer {
  const b = Buffer.alloc(40 + 40);
  b[0] = 1;
  b.writeUInt16LE(11, 2);
  b.writeUInt16LE((b.length - 8) / 4, 6);
  b.writeUInt32LE(0x200000, 12);
  b[28] = 1;
  b[34] = 8;
  b[35] = 255;
  b.writeUInt32LE(ROOT, 40);
  b.writeUInt16LE(width, 60);
  b.writeUInt16LE(height, 62);
  return b;
}
