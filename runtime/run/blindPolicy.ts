import type { Frame, Screenshot, Size } from '../domain/index.js';
import type { Policy } from '../policy/types.js';

/**
 * The blind control: the same policy, to which every screen is one even grey of the same size. What it still solves
 * needs no eyes. Recordings keep the screens as they were.
 */
export const blinded = (policy: Policy): Policy => ({
  open(o) {
    const session = policy.open(o);
    return {
      decide: (screen, signal) => session.decide(blank(screen), signal),
      acted: (actions) => session.acted(actions),
      ...(session.retract ? { retract: () => session.retract!() } : {}),
      close: () => session.close(),
    };
  },
});

/**
 * The random control: every choice that is possible is as probable as any other, whatever is on the screen. What it
 * solves needs no policy.
 */
export const randomly = (policy: Policy): Policy => ({
  open: (o) => policy.open({ ...o, sampling: { ...o.sampling, greedy: false, temperature: EVEN } }),
});
/** Logits divided by this are the same. */
const EVEN = 1e6;

const GREY = 0x80;
let grey: Buffer = Buffer.alloc(0);
/** One shared picture a size: nobody writes to it. */
export function blank({ width, height, capturedAt = 0 }: Size & Partial<Pick<Screenshot, 'capturedAt'>>): Frame {
  const bytes = width * height * 4;
  if (grey.length !== bytes) grey = Buffer.alloc(bytes, GREY);
  return { width, height, capturedAt, data: grey };
}
