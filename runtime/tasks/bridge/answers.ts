import { runCommand, type TaskCommand } from '../command.js';
import type { TaskContext } from '../context.js';
import { cdpCall, cdpClose, cdpOpen, cdpTargets, NoBrowser, type CdpStep } from '../cdp.js';
import { accessibilityTree, terminalText } from '../getters/accessibility.js';
import { readDesktopFile, TooLarge } from '../getters/files.js';
import { listDirectory, screenSize, vlcStatus, windowSize } from '../getters/system.js';
import { launch } from '../setup/commands.js';
import { isFile } from '../values.js';
import type { Answer } from './asker.js';

/** Largest file that is handed to an evaluator, bytes. */
const MAX_FILE = 64 * 1024 * 1024;

type Asked = Readonly<Record<string, unknown>>;
type HttpReply = { readonly status: number; readonly type: string; readonly body: string };

/**
 * Answers an evaluator's questions about the desktop as OSWorld's server would
 * (runtime/tasks/README.md#evaluator-bridge). An answer that the desktop cannot give is an error here and ends the
 * evaluation; "not there" is null.
 */
export const answersOf =
  (ctx: TaskContext): Answer =>
  (name, what) => {
    const answer = Object.hasOwn(ANSWERS, name) ? ANSWERS[name] : undefined;
    if (!answer) return Promise.reject(new Error(`the evaluator asks for ${name}, which is not offered`));
    return answer(ctx, what);
  };

const ANSWERS: Readonly<Record<string, (ctx: TaskContext, what: Asked) => Promise<unknown>>> = {
  file: async (ctx, { path }) => {
    const data = await readDesktopFile(ctx, String(path));
    if (data && data.length > MAX_FILE) throw new TooLarge(`${String(path)} is too large to be judged`);
    return data;
  },
  execute: (ctx, { command }) => execute(ctx, { command: command as TaskCommand['command'] }),
  http,
  accessibility: (ctx) => accessibilityTree(ctx),
  terminal: (ctx) => terminalText(ctx),
  wallpaper,
  screen_size: (ctx) => screenSize(ctx, {}),
  window_size: (ctx, { name }) => windowSize(ctx, { app_class_name: name }),
  list_directory: (ctx, { path }) => listDirectory(ctx, { path }),
  cdp_targets: async (ctx) => {
    try {
      return await cdpTargets(ctx);
    } catch (e) {
      if (e instanceof NoBrowser) return null;
      throw e;
    }
  },
  cdp_open: (ctx, { url }) => cdpOpen(ctx, String(url)),
  cdp_close: (ctx, { target }) => cdpClose(ctx, String(target)),
  cdp: (ctx, { target, steps, timeoutMs }) =>
    cdpCall(ctx, String(target), steps as CdpStep[], Math.min(60_000, Number(timeoutMs) || 30_000)),
};

/** Null where the program cannot be run, as OSWorld's controller has it. */
async function execute(ctx: TaskContext, c: TaskCommand): Promise<unknown> {
  const r = await runCommand(ctx, c);
  return r ? { status: 'success', output: r.stdout, error: r.stderr, returncode: r.code } : null;
}

/** The ports of a virtual machine that getters talk to by themselves: its server, and VLC's web interface. */
async function http(ctx: TaskContext, w: Asked): Promise<HttpReply> {
  const route = `${String(w['method'])} :${String(w['port'])}${String(w['path'])}`,
    body = (w['body'] ?? {}) as { command: string | string[]; shell?: boolean };
  if (route === 'POST :5000/execute' || route === 'POST :5000/setup/execute') {
    const answer = await execute(ctx, body);
    return answer === null ? reply(500, { status: 'error', message: 'it cannot be run' }) : reply(200, answer);
  }
  if (route === 'POST :5000/setup/launch') {
    await (ctx.verdict ? ctx.verdict.act(() => launch(ctx, body)) : launch(ctx, body));
    return reply(200, 'launched successfully');
  }
  if (route === 'GET :8080/requests/status.xml') {
    const status = await vlcStatus(ctx, {});
    return isFile(status)
      ? { status: 200, type: 'text/xml', body: status.data.toString('base64') }
      : reply(404, 'VLC does not answer');
  }
  throw new Error(`the evaluator asks the desktop's ${route}, which is not offered`);
}
const reply = (status: number, value: unknown): HttpReply => ({
  status,
  type: 'application/json',
  body: Buffer.from(JSON.stringify(value)).toString('base64'),
});

/** The path decoded, or as it is where it is no escaped text: a policy may set anything. */
function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
async function wallpaper(ctx: TaskContext): Promise<unknown> {
  const r = await runCommand(ctx, { command: ['gsettings', 'get', 'org.gnome.desktop.background', 'picture-uri'] }),
    uri = /^'(?:file:\/\/)?(\/.*)'$/.exec(r?.stdout.trim() ?? '')?.[1];
  return uri === undefined ? null : ANSWERS['file']!(ctx, { path: decoded(uri) });
}
