import { z } from 'zod';
import { StudioError } from '../../domain/index.js';
import { desktopJson } from '../../foreign/desktopJson.js';
import type { BrowserAnswer, BrowserCommand, Desktop, ExecOptions } from '../types.js';

/** Inside a desktop of its own network, so one number serves all (images/web). */
const PORT = 7800,
  PROGRAM = '/opt/dart-web/browser.py',
  PROFILE = '/var/tmp/browser';
/** Chromium takes 0.5 to 2 s to start, more on a crowded machine. */
const START_MS = 30_000,
  /** Default time limit of a command in `browser.py`. */
  COMMAND_MS = 5_000;

/** Reads a line, sends it, and prints the line that comes back: 4 ms, where Python takes 20. */
const ASK = `exec 3<>/dev/tcp/127.0.0.1/${PORT} || exit 7; IFS= read -r q; printf '%s\\n' "$q" >&3; IFS= read -r a <&3; printf '%s' "$a"`;

/** BrowserGym's for MiniWoB++, CSS pixels: the page is drawn as large as the screen has room for. */
const VIEWPORT = { width: 332, height: 214 };

/** `tidy` closes other pages and programs and clears storage. */
export type OwnCommand = BrowserCommand | { readonly tidy: true; readonly ms?: number };

/** `whole`, of `tidy`: nothing had to be closed. */
export type OwnAnswer =
  | { readonly ok: readonly { readonly value?: unknown; readonly whole?: boolean | undefined }[] }
  | Extract<BrowserAnswer, { error: string }>;
const Answer = z.union([
  z.object({ ok: z.array(z.object({ value: z.unknown().optional(), whole: z.boolean().optional() })) }),
  z.object({ error: z.string(), at: z.number(), kind: z.enum(['page', 'hung', 'browser']) }),
]);

/** Pages' values are numbers, short texts and the places of elements. */
const BOUNDS = { bytes: 1 << 20, depth: 32, values: 1 << 15 };

/** Rejects with `desktop.lost` or `cancelled` alone; what the browser has to say is the answer. */
export async function browse(
  desktop: Desktop,
  commands: readonly OwnCommand[],
  o: Pick<ExecOptions, 'signal'> = {},
): Promise<OwnAnswer> {
  const timeoutMs = commands.reduce((ms, c) => ms + (c.ms ?? COMMAND_MS), COMMAND_MS);
  const r = await desktop.exec(['bash', '-c', ASK], {
    ...o,
    stdin: `${JSON.stringify(commands)}\n`,
    timeoutMs,
    verifier: true,
  });
  const none = (error: string, kind: 'hung' | 'browser' | 'page' = 'browser'): OwnAnswer => ({ error, at: 0, kind });
  if (r.timedOut) return none('The browser did not answer in time.', 'hung');
  if (r.code !== 0) return none('There is no browser.');
  // An empty answer: it ended meanwhile.
  if (r.stdout.length === 0) return none('The browser ended.');
  let beyond: string | undefined;
  try {
    const said = desktopJson(r.stdout, BOUNDS, (why, what) => {
        if (what === 'bounds') beyond = why;
        return new Error(why);
      }),
      // A longer list than that of the commands is not even looked through.
      many = typeof said === 'object' && said !== null && 'ok' in said && Array.isArray(said.ok) ? said.ok.length : 0,
      answer = many <= commands.length ? Answer.safeParse(said) : undefined;
    if (answer?.success === true) return answer.data;
  } catch {
    // The text is no answer of the browser's program.
  }
  // Whatever a page makes of its values, the browser is none the worse for it.
  if (beyond !== undefined) return none(`The answer of the page ${beyond}.`, 'page');
  return none('The browser gave no answer that can be used.');
}

/** Starts the browser of the image and waits until it shows an empty page. */
export async function startBrowser(desktop: Desktop, signal?: AbortSignal): Promise<void> {
  const { width, height } = desktop.screen,
    scale = Math.floor(100 * Math.min(width / VIEWPORT.width, height / VIEWPORT.height)) / 100;
  const r = await desktop.exec(
    ['/usr/bin/python3', '-S', '-E', PROGRAM, 'start', String(PORT), PROFILE, `--force-device-scale-factor=${scale}`],
    { timeoutMs: START_MS, signal },
  );
  if (r.code !== 0)
    throw new StudioError(
      'desktop.start',
      `The browser of the desktop did not start: ${r.timedOut ? `no sign of it after ${START_MS / 1000} s` : r.stderr.toString().slice(0, 500) || `exit code ${r.code}`}.`,
      'Give the desktops more memory (desktops.memoryMb, at least 768) and processes (desktops.pids, at least 256), or build the image again: dart-studio desktop build --image web --force.',
    );
}
