import { StudioError, type Point } from '../domain/index.js';
import { argv, runCommand, type TaskCommand } from './command.js';
import type { TaskContext } from './context.js';
import { heldAfter, NOTHING_HELD, programOf, type Held } from './program.js';

/** pyautogui's own pause after each call. */
const PAUSE_MS = 100;
/** A program that waits for this long or less is not done: what follows a sleep relies on what it waits for. */
const SLEEP_HORIZON_MS = 500;

/** Modifiers that steps left down, by what is known of a desktop since its set-up began. */
const heldBy = new WeakMap<TaskContext['stateOf'], Held>();

/** The code of `python -c CODE`, which is how task files and OSWorld's controllers send pyautogui. */
export function pythonCode(words: readonly string[]): string | undefined {
  const [program, flag, code, ...rest] = words;
  return /^(?:.*\/)?python3?$/.test(program ?? '') && flag === '-c' && rest.length === 0 ? code : undefined;
}

/**
 * A step that acts with pyautogui and waits in between, performed without Python: each of its waits ends as soon as the
 * desktop is idle. False where it says anything else, or waits are to be as long as the file says: it is run as it is.
 */
export async function performed(ctx: TaskContext, c: TaskCommand): Promise<boolean> {
  const { desktop } = ctx,
    code = pythonCode(argv(c));
  if (code === undefined || !desktop.input || ctx.settings.sleepMode !== 'settle') return false;
  let held = heldBy.get(ctx.stateOf) ?? NOTHING_HELD;
  const read = (pointer?: Point): ReturnType<typeof programOf> =>
    programOf(code, desktop.screen, pointer, { pauseMs: PAUSE_MS, held });
  let program = read();
  if (program === 'pointer') program = read(await askedPointer(ctx));
  if (program === undefined || program === 'pointer') return false;
  for (const op of program.ops) {
    if (op.kind === 'sleep') {
      await idle(ctx, op.ms);
      continue;
    }
    await (ctx.verdict ? ctx.verdict.act(() => desktop.input!(op.events)) : desktop.input(op.events));
    held = heldAfter(held, op.events);
    heldBy.set(ctx.stateOf, held);
  }
  return true;
}

/** Waits until the desktop is idle, no longer than this, nor than any sleep may take. */
export async function idle(ctx: TaskContext, ms: number): Promise<void> {
  const maxMs = Math.min(ms, ctx.settings.sleepCapMs);
  await ctx.desktop.settle({ maxMs, horizonMs: Math.min(SLEEP_HORIZON_MS, maxMs) });
}

export async function askedPointer(ctx: TaskContext): Promise<Point> {
  const out = await runCommand(ctx, { command: ['xdotool', 'getmouselocation', '--shell'] }),
    at = (name: string): number => Number(new RegExp(`^${name}=(\\d+)$`, 'm').exec(out?.stdout ?? '')?.[1] ?? NaN);
  const point = { x: at('X'), y: at('Y') };
  if (Number.isNaN(point.x) || Number.isNaN(point.y))
    throw new StudioError(
      'desktop.exec',
      'The desktop does not say where its pointer is.',
      'Use an image with xdotool.',
    );
  return point;
}
