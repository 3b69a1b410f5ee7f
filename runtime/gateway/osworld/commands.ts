import { shellQuoted } from '../../foreign/shellQuoted.js';
import type { Point } from '../../domain/index.js';
import { StudioError, messageOf } from '../../domain/index.js';
import { pause } from '../../concurrency/pause.js';
import type { Desktop, DesktopInput } from '../../cluster/types.js';
import { argv, runCommand, type CommandOutput } from '../../tasks/command.js';
import type { TaskContext } from '../../tasks/context.js';
import { askedPointer, pythonCode } from '../../tasks/performed.js';
import { heldAfter, modifiersOf, NOTHING_HELD, programOf, type Held } from '../../tasks/program.js';
import { launch } from '../../tasks/setup/commands.js';
import { holds } from '../../tasks/setup/verified.js';
import { jsonReply, textReply, type Reply, type Request } from '../http.js';
import { commandBody, jsonBody, pythonBody, scriptBody, verifiedBody } from './body.js';
import { isLost } from './context.js';
import { failure } from './failure.js';

const success = (o: CommandOutput): Reply =>
  jsonReply({ status: 'success', output: o.stdout, error: o.stderr, returncode: o.code });

/**
 * Commands of clients to one desktop, since its reset. It knows where the pointer is, as long as nothing but its own
 * programs moved it, and which modifiers their programs left down.
 */
export class Commands {
  readonly #desktop: Desktop;
  #pointer: Point | undefined;
  #held: Held = NOTHING_HELD;
  /** Programs performed without Python, and commands run as they are. */
  readonly counts = { performed: 0, run: 0 };

  constructor(desktop: Desktop) {
    this.#desktop = desktop;
  }

  /** POST /execute, /setup/execute. A non-zero exit is a success with its code, as in OSWorld. */
  async execute(ctx: TaskContext, r: Request): Promise<Reply> {
    const c = jsonBody(r, commandBody);
    if (await this.#performed(ctx, argv(c))) return success({ stdout: '', stderr: '', code: 0 });
    const out = await this.#run(ctx, c);
    return out ? success(out) : failure('The command cannot be run in this desktop.');
  }

  /** POST /execute_with_verification: asks again until the window is there or the command succeeds. */
  async executeVerified(ctx: TaskContext, r: Request): Promise<Reply> {
    const b = jsonBody(r, verifiedBody),
      began = performance.now(),
      out = await this.#run(ctx, b);
    if (!out) return failure('The command cannot be run in this desktop.');
    const seconds = (): number => (performance.now() - began) / 1000;
    for (;;) {
      if (await holds(ctx, b.verification))
        return jsonReply({
          status: 'success',
          output: out.stdout,
          error: out.stderr,
          returncode: out.code,
          verification: 'passed',
          wait_time: seconds(),
        });
      if (seconds() >= b.max_wait_time)
        return jsonReply(
          {
            status: 'verification_failed',
            output: out.stdout,
            error: out.stderr,
            returncode: out.code,
            wait_time: b.max_wait_time,
          },
          500,
        );
      await pause(b.check_interval * 1000, ctx.signal, gone);
    }
  }

  /** POST /setup/launch. */
  async launch(ctx: TaskContext, r: Request): Promise<Reply> {
    const b = jsonBody(r, commandBody);
    try {
      this.#pointer = undefined;
      await launch(ctx, { command: b.command, shell: b.shell === undefined ? undefined : Boolean(b.shell) });
    } catch (e) {
      if (isLost(e)) throw e;
      return failure(messageOf(e));
    }
    const words = typeof b.command === 'string' ? b.command : b.command.join(' ');
    return textReply(`${words} launched successfully`);
  }

  /** POST /run_python. */
  async python(ctx: TaskContext, r: Request): Promise<Reply> {
    const { code } = jsonBody(r, pythonBody),
      out = await this.#run(
        { ...ctx, settings: { ...ctx.settings, commandMs: 30_000 } },
        {
          command: ['python3', '-c', code],
        },
      );
    if (!out) return failure('There is no Python in this desktop.');
    return jsonReply({
      status: out.code === 0 ? 'success' : 'error',
      message: out.code === 0 ? out.stdout : out.stderr,
      need_more: false,
      output: out.stdout,
      error: out.stderr,
      return_code: out.code,
    });
  }

  /** POST /run_bash_script. OSWorld's own server answers 500 to every call; its clients expect this. */
  async script(ctx: TaskContext, r: Request): Promise<Reply> {
    const b = jsonBody(r, scriptBody),
      limited = { ...ctx, settings: { ...ctx.settings, commandMs: b.timeout * 1000 } },
      inside = b.working_dir ? `cd ${shellQuoted(b.working_dir)} && ` : '';
    try {
      const out = await this.#run(limited, { command: ['/bin/bash', '-c', `exec 2>&1; ${inside}${b.script}`] });
      if (!out) return failure('There is no bash in this desktop.');
      return jsonReply({
        status: out.code === 0 ? 'success' : 'error',
        output: out.stdout,
        error: '',
        returncode: out.code,
      });
    } catch (e) {
      if (e instanceof StudioError && e.kind === 'timeout')
        return jsonReply(
          {
            status: 'error',
            output: `Script execution timed out after ${b.timeout} seconds`,
            error: '',
            returncode: -1,
          },
          500,
        );
      throw e;
    }
  }

  /** The place of the pointer: known here, or asked. */
  async pointer(ctx: TaskContext): Promise<Point> {
    this.#pointer ??= await askedPointer(ctx);
    return this.#pointer;
  }

  /** Anything else may move the pointer. */
  async #run(ctx: TaskContext, c: Parameters<typeof runCommand>[1]): Promise<CommandOutput | undefined> {
    this.counts.run++;
    this.#pointer = undefined;
    const out = await runCommand(ctx, c);
    if (out?.code === 0) await this.#follow(pythonCode(argv(c)) ?? '');
    return out;
  }
  /** The desktop's input is told what a Python did to modifiers: it releases only those that it knows to be down. */
  async #follow(code: string): Promise<void> {
    const was = this.#held,
      is = heldAfter(was, modifiersOf(code)),
      changed = [...was, ...is].filter((key) => was.has(key) !== is.has(key));
    if (changed.length > 0) await this.#input(changed.map((key) => ({ type: 'key', key, down: is.has(key) })));
  }
  async #input(events: readonly DesktopInput[]): Promise<void> {
    if (!this.#desktop.input) return;
    await this.#desktop.input(events);
    this.#held = heldAfter(this.#held, events);
  }

  /** `python -c "import pyautogui; …"` as input events; false when it must be run as it is. */
  async #performed(ctx: TaskContext, words: readonly string[]): Promise<boolean> {
    const code = pythonCode(words);
    if (code === undefined || !this.#desktop.input) return false;
    const { screen } = this.#desktop,
      read = (): ReturnType<typeof programOf> => programOf(code, screen, this.#pointer, { held: this.#held });
    let p = read();
    if (p === 'pointer') {
      await this.pointer(ctx);
      p = read();
    }
    if (p === undefined || p === 'pointer') return false;
    this.counts.performed++;
    // A client that goes away in the middle leaves it wherever it is.
    this.#pointer = undefined;
    for (const op of p.ops) {
      if (op.kind === 'sleep') await pause(op.ms, ctx.signal, gone);
      else await this.#input(op.events);
    }
    this.#pointer = p.pointer;
    return true;
  }
}

const gone = (): Error => new StudioError('cancelled', 'The client went away.', 'Send the request again.');
