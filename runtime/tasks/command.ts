import type { ExecResult } from '../cluster/types.js';
import type { Size } from '../domain/index.js';
import { StudioError } from '../domain/index.js';
import type { TaskContext } from './context.js';
import { HOME } from './context.js';
import { mentionsPyautogui, mentionsPython, pyautoguiEnv, withPython } from './pyautogui.js';
import { shlex } from './shlex.js';
import { decodeText, truthy } from './values.js';
import { asksApplications } from './verdict.js';

/** Commands of task files, run inside the desktop as OSWorld's server runs them (runtime/tasks/README.md#commands). */
export interface TaskCommand {
  readonly command: string | readonly string[];
  readonly shell?: unknown;
}

/**
 * The argument vector: with `shell`, `/bin/sh -c`; without, a string is split into words. `shell: "true"` counts as
 * true, as any non-empty string does in Python. A leading `~/` becomes the home folder, except in shell text.
 */
export function argv({ command, shell }: TaskCommand): string[] {
  if (truthy(shell)) return ['/bin/sh', '-c', ...(typeof command === 'string' ? [command] : command)];
  return (typeof command === 'string' ? shlex(command) : [...command]).map((a) =>
    a.startsWith('~/') ? `${HOME}${a.slice(1)}` : a,
  );
}

/** OSWorld's placeholders; only execute and command steps have them. */
export function fillPlaceholders(
  command: string | readonly string[],
  password: string,
  screen: Size,
): string | string[] {
  const values: Record<string, string> = {
    '{CLIENT_PASSWORD}': password,
    '{SCREEN_WIDTH_HALF}': String(Math.floor(screen.width / 2)),
    '{SCREEN_HEIGHT_HALF}': String(Math.floor(screen.height / 2)),
    '{SCREEN_WIDTH}': String(screen.width),
    '{SCREEN_HEIGHT}': String(screen.height),
  };
  const fill = (s: string): string => Object.entries(values).reduce((t, [k, v]) => t.replaceAll(k, v), s);
  return typeof command === 'string' ? fill(command) : command.map(fill);
}

export interface CommandOutput {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The program is missing or not executable; anything else (no process, no memory) is a fault of the desktop. */
const NOT_RUNNABLE = new Set(['ENOENT', 'EACCES', 'ENOEXEC', 'ENOTDIR', 'EISDIR']);

/**
 * Run to the end. Undefined when the program could not be started or its output is not text (OSWorld's server answers
 * 500). Rejects with `timeout` when it does not end (Spoiled while the task is judged), `desktop.lost` when the desktop
 * is gone.
 */
export async function runCommand(ctx: TaskContext, c: TaskCommand, o?: RunOptions): Promise<CommandOutput | undefined> {
  const r = await runRaw(ctx, c, o);
  return r && asText(r);
}
/** Undefined when it is not text. */
export function asText(r: ExecResult): CommandOutput | undefined {
  const stdout = decodeText(r.stdout),
    stderr = decodeText(r.stderr);
  return stdout === undefined || stderr === undefined ? undefined : { code: r.code, stdout, stderr };
}

/** The same with its output in bytes; undefined when the program could not be started. */
export async function runRaw(ctx: TaskContext, c: TaskCommand, o: RunOptions = {}): Promise<ExecResult | undefined> {
  let r: ExecResult;
  const p = await (ctx.verdict && mentionsPyautogui(argv(c).join(' '))
      ? ctx.verdict.act(() => prepare(ctx, c))
      : prepare(ctx, c)),
    options = { timeoutMs: ctx.settings.commandMs, signal: ctx.signal, cwd: HOME, env: p.env };
  try {
    r = await (ctx.verdict
      ? ctx.verdict.exec(p.argv, options, describe(c), needsOf(c, o))
      : ctx.desktop.exec(p.argv, options));
  } catch (e) {
    if (e instanceof StudioError && e.kind === 'desktop.exec' && NOT_RUNNABLE.has(String(e.error.details?.['code'])))
      return undefined;
    throw e;
  }
  if (r.timedOut) {
    throw new StudioError(
      'timeout',
      `The command ${describe(c)} did not end within ${ctx.settings.commandMs / 1000} s.`,
      'Give the desktop more CPU, or correct the task file.',
    );
  }
  return r;
}

const needsOf = ({ command }: TaskCommand, o: RunOptions): 'nothing' | 'applications' | 'acts' =>
  o.acts ? 'acts' : asksApplications([command].flat().join(' ')) ? 'applications' : 'nothing';

export interface RunOptions {
  /** The command is run for what it does to the desktop, not for what it prints. */
  readonly acts?: boolean;
}

/** The argument vector, with stand-ins for `python` and pyautogui where a command names them. */
export async function prepare(
  ctx: TaskContext,
  c: TaskCommand,
): Promise<{ argv: string[]; env?: Record<string, string> }> {
  const words = argv(c),
    text = words.join(' ');
  if (!ctx.settings.pythonStandIn) return { argv: words };
  return {
    argv: mentionsPython(text) ? withPython(words) : words,
    env: mentionsPyautogui(text) ? await pyautoguiEnv(ctx) : undefined,
  };
}

export function describe({ command }: TaskCommand): string {
  const s = typeof command === 'string' ? command : command.join(' ');
  return s.length > 120 ? `${s.slice(0, 119)}…` : s;
}
