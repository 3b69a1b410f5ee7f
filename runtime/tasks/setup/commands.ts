import type { ExecResult } from '../../cluster/types.js';
import { describe, fillPlaceholders, prepare, runRaw } from '../command.js';
import type { TaskContext } from '../context.js';
import { HOME } from '../context.js';
import { idle, performed } from '../performed.js';
import type { SetupParameters } from '../taskFile.js';
import { Spoiled } from '../spoiled.js';
import { decodeText, truthy } from '../values.js';

/** Pause between two attempts of an `until` command (OSWorld: 0.3 s). */
const UNTIL_PAUSE_MS = 300;
/** Attempts at a command that cannot be run at all (OSWorld: 5). */
const MAX_FAILS = 5;

/**
 * Run a command to its end, again until `until` holds; save its output under the names given. A non-zero exit is not an
 * error (OSWorld).
 */
export async function execute(ctx: TaskContext, p: SetupParameters<'execute'>): Promise<void> {
  const c = { command: fillPlaceholders(p.command, ctx.settings.clientPassword, ctx.desktop.screen), shell: p.shell };
  const until = p.until && Object.keys(p.until).length > 0 ? p.until : undefined,
    acts = !(p.stdout || p.stderr || until);
  if (acts && (await performed(ctx, c))) return;
  const end = ctx.settings.now() + ctx.settings.waitMs;
  for (let fails = 0, left = p.attempts ?? Infinity; ;) {
    const out = await runRaw(ctx, c, { acts });
    if (out !== undefined) {
      if (p.stdout) ctx.cache.set(p.stdout, out.stdout);
      if (p.stderr) ctx.cache.set(p.stderr, out.stderr);
      if (until === undefined || holds(until, out)) return;
      if (--left <= 0) throw failed(ctx, `${describe(c)} failed (exit code ${out.code})`);
      if (ctx.settings.now() >= end)
        throw failed(
          ctx,
          `${describe(c)} did not reach what "until" asks within ${ctx.settings.waitMs / 1000} s (last exit code ${out.code})`,
        );
    } else if (until === undefined || ++fails >= MAX_FAILS) {
      const why = `${describe(c)} cannot be run in this desktop`;
      throw OF_THE_IMAGE.test([c.command].flat().join(' ')) ? new Error(why) : failed(ctx, why);
    }
    await ctx.settings.sleep(UNTIL_PAUSE_MS, ctx.signal);
  }
}

/** A program of the image, which nobody in the desktop can remove: its name alone, or a path outside of the home. */
const OF_THE_IMAGE = /^\s*([\w.+-]+(\s|$)|\/(usr|bin|sbin|opt)\/)/;

/** While the task is judged, programs of the desktop can have brought it about. */
const failed = (ctx: TaskContext, why: string): Error => (ctx.verdict ? new Spoiled(why) : new Error(why));

/** Output that is not text holds no text. */
const holds = (u: NonNullable<SetupParameters<'execute'>['until']>, out: ExecResult): boolean =>
  (u.returncode !== undefined && out.code === u.returncode) ||
  (u.stdout !== undefined && decodeText(out.stdout)?.includes(u.stdout) === true) ||
  (u.stderr !== undefined && decodeText(out.stderr)?.includes(u.stderr) === true);

/** Start a program and leave it running. A command line without shell is split at blanks. */
export async function launch(ctx: TaskContext, p: SetupParameters<'launch'>): Promise<void> {
  const command =
    typeof p.command === 'string' && !truthy(p.shell) ? p.command.split(/\s+/).filter((w) => w !== '') : p.command;
  const c = await prepare(ctx, { command, shell: p.shell });
  const pid = await ctx.desktop.spawn(c.argv, { cwd: HOME, env: c.env });
  ctx.launched.set(pid, { what: describe({ command }), shell: truthy(p.shell) });
}

/** The file's own wait, capped; in `settle` mode only until the desktop is idle. */
export async function pause(ctx: TaskContext, p: SetupParameters<'sleep'>): Promise<void> {
  const ms = p.seconds * 1000;
  if (ctx.settings.sleepMode === 'settle') await idle(ctx, ms);
  else await ctx.settings.sleep(Math.min(ms, ctx.settings.sleepCapMs), ctx.signal);
}
