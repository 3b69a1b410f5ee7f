import { describe, runRaw } from '../command.js';
import type { TaskContext } from '../context.js';
import { checkCancelled } from '../context.js';
import { Spoiled } from '../spoiled.js';
import type { SetupParameters } from '../taskFile.js';
import { windows } from './windows.js';

/** The proof that a command has worked: a window, by a part of its title, or another command that succeeds. */
export interface Verification {
  readonly window_exists?: string | undefined;
  readonly command_success?: string | undefined;
}
export async function holds(ctx: TaskContext, v: Verification): Promise<boolean> {
  if (v.window_exists !== undefined) {
    const wanted = v.window_exists.toLowerCase();
    if (!(await windows(ctx)).some((w) => w.title.toLowerCase().includes(wanted))) return false;
  }
  if (v.command_success !== undefined) {
    const out = await runRaw(ctx, { command: v.command_success, shell: true });
    if (out?.code !== 0) return false;
  }
  return true;
}

/** Runs a command and waits until what it is for is there. */
export async function executeVerified(
  ctx: TaskContext,
  p: SetupParameters<'execute_with_verification'>,
): Promise<void> {
  await runRaw(ctx, { command: p.command, shell: p.shell }, { acts: true });
  const end = ctx.settings.now() + p.max_wait_time * 1000;
  while (!(await holds(ctx, p.verification))) {
    checkCancelled(ctx.signal);
    if (ctx.settings.now() >= end) {
      const why = `what ${describe(p)} is for did not come about within ${p.max_wait_time} s`;
      throw ctx.verdict ? new Spoiled(why) : new Error(why);
    }
    await ctx.settings.sleep(Math.max(50, p.check_interval * 1000), ctx.signal);
  }
}
