import type { Frame, Screenshot, Size } from '../domain/index.js';
import type { Policy } from '../policy/types.js';

/**
 * The blind control: the same policy, shown one even grey instead of every screen. What it still solves can be solved
 * without seeing. Recordings keep the real screens.
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
 * The random control: every possible choice is equally probable, whatever is on the screen. What it solves can be
 * solved by chance.
 */
export const randomly = (policy: Policy): Policy => ({
  open: (o) => policy.open({ ...o, sampling: { ...o.sampling, greedy: false, temperature: EVEN } }),
});
/** Dividing logits by this makes them equal. */
const EVEN = 1e6;

const GREY = 0x80;
let grey: Buffer = Buffer.alloc(0);
/** One shared picture for each size; it is never written to. */
export function blank({ width, height, capturedAt = 0 }: Size & Partial<Pick<Screenshot, 'capturedAt'>>): Frame {
  const bytes = width * height * 4;
  if (grey.length !== bytes) grey = Buffer.alloc(bytes, GREY);
  return { width, height, capturedAt, data: grey };
}
