import { PropertyChangeMask, request, type X11Client } from './x11Client.js';

const CREATE_WINDOW = 1,
  CHANGE_PROPERTY = 18;
const INPUT_ONLY = 2,
  OVERRIDE_REDIRECT = 0x200,
  EVENT_MASK = 0x800;
/** Predefined atoms: any property of any type will do. */
const WM_NAME = 39,
  STRING = 31;

/** When the server came to a place among the client's requests. */
export interface Stamp {
  /** Milliseconds of the server's clock, which wraps after 49 days; undefined until a later `sync` resolves. */
  readonly ms: number | undefined;
}

/**
 * The clock by which an X server stamps input, read between two requests: a property of a window of ours, which is never
 * shown, changes there, and the server says when (X protocol, PropertyNotify).
 */
export class ServerClock {
  readonly #x: X11Client;
  readonly #window: number;
  readonly #open: { ms: number | undefined }[] = [];

  constructor(x: X11Client) {
    this.#x = x;
    this.#window = x.newResource();
    const create = request(CREATE_WINDOW, 0, 40);
    create.writeUInt32LE(this.#window, 4);
    create.writeUInt32LE(x.root, 8);
    create.writeUInt16LE(1, 16);
    create.writeUInt16LE(1, 18);
    create.writeUInt16LE(INPUT_ONLY, 22);
    create.writeUInt32LE(OVERRIDE_REDIRECT | EVENT_MASK, 28);
    create.writeUInt32LE(1, 32);
    create.writeUInt32LE(PropertyChangeMask, 36);
    x.post(create);
    x.onEvent((e) => {
      if (e.type !== 'property' || e.window !== this.#window) return;
      const stamp = this.#open.shift();
      if (stamp) stamp.ms = e.ms;
    });
  }

  /** Queues the reading without waiting; it is there once a later `sync` of the client resolves. */
  stamp(): Stamp {
    const b = request(CHANGE_PROPERTY, 0, 24),
      stamp = { ms: undefined };
    b.writeUInt32LE(this.#window, 4);
    b.writeUInt32LE(WM_NAME, 8);
    b.writeUInt32LE(STRING, 12);
    b[16] = 8;
    this.#x.post(b);
    this.#open.push(stamp);
    return stamp;
  }
}

/** Milliseconds between two stamps; undefined when the server did not say. */
export const between = (a: Stamp, b: Stamp): number | undefined =>
  a.ms === undefined || b.ms === undefined ? undefined : (b.ms - a.ms) >>> 0;
