import type { Frame } from '../domain/index.js';
import type { Policy } from '../policy/types.js';

/**
 * The blind control: the same policy, to which every screen is one even grey of the same size. What it still solves
 * needs no eyes. Recordings keep the screens as they were.
 */
export const blinded = (policy: Policy): Policy => ({
  open(o) {
    const session = policy.open(o);
    return {
      decide: (frame, signal) => session.decide(blank(frame), signal),
      acted: (actions) => session.acted(actions),
      ...(session.retract ? { retract: () => session.retract!() } : {}),
      close: () => session.close(),
    };
  },
});

const GREY = 0x80;
let grey: Buffer = Buffer.alloc(0);
/** One shared picture a size: nobody writes to it. */
export function blank(frame: Frame): Frame {
  if (grey.length !== frame.data.length) grey = Buffer.alloc(frame.data.length, GREY);
  return { ...frame, data: grey };
}
