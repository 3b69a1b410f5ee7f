import { orUndefined } from '../../concurrency/failures.js';
import type { TaskContext } from '../context.js';
import { checkCancelled } from '../context.js';
import type { SetupParameters } from '../taskFile.js';
import { Spoiled } from '../spoiled.js';
import { truthy } from '../values.js';

export interface Window {
  readonly id: string;
  readonly className: string;
  readonly width: number;
  readonly height: number;
  readonly title: string;
}

/** How long an app may be busy after a window was asked to open or close. */
const SETTLE_MS = 1000;
/** Pause between two looks at the window list while the desktop is idle. */
const LOOK_AGAIN_MS = 50;

/** Programs of the desktop give windows their titles and open as many as they like: more is not looked at. */
const MAX_WINDOWS = 2000;
const MAX_LINE = 4096;
/** Characters of a title in which a file's name without its ending is looked for. */
const MAX_SEARCHED = 1024;

const wmctrl = async (ctx: TaskContext, ...args: string[]): Promise<string> => {
  const argv = ['wmctrl', ...args],
    o = { timeoutMs: 10_000, signal: ctx.signal };
  const r = await (ctx.verdict
    ? ctx.verdict.exec(argv, o, 'that asks for windows', 'applications')
    : ctx.desktop.exec(argv, o));
  if (r.timedOut || r.code === 127) throw new Error('wmctrl does not work in this desktop');
  return r.stdout.toString('utf8');
};

/** Managed windows, oldest first (`wmctrl -lGx`: id, desktop, x, y, w, h, class, host, title). */
export async function windows(ctx: TaskContext): Promise<Window[]> {
  return parseWindows(await wmctrl(ctx, '-lGx'));
}

export function parseWindows(listing: string): Window[] {
  const lines = listing.split('\n', MAX_WINDOWS);
  return lines.flatMap((whole) => {
    const line = whole.slice(0, MAX_LINE),
      m = HEAD.exec(line);
    if (m === null) return [];
    return [{ id: m[1]!, width: Number(m[2]), height: Number(m[3]), ...named(line.slice(m[0].length)) }];
  });
}

/** Ends in blanks and asks for nothing after them: it never has to go back. */
const HEAD = /^(0x[0-9a-f]+)\s+-?\d+\s+-?\d+\s+-?\d+\s+(\d+)\s+(\d+)\s+/i;
/** The host of a window on our desktops, and wmctrl's word for one that names none. */
const HOSTS = ['desktop', 'N/A'];

/**
 * wmctrl pads the class and puts the host before the title. A class may have blanks, where its program was given a
 * profile; our desktops' own name for the host tells where it ends, else the first blank. Programs choose all three, so
 * this passes over them once.
 */
function named(rest: string): Pick<Window, 'className' | 'title'> {
  const own = HOSTS.map((host) => ({ at: hostAt(rest, host), length: host.length }))
    .filter((h) => h.at > 0)
    .sort((a, b) => a.at - b.at)[0];
  if (own) return { className: rest.slice(0, own.at).trimEnd(), title: rest.slice(own.at + own.length + 1) };
  const blank = rest.search(/\s/),
    after = blank < 0 ? '' : rest.slice(blank).trimStart(),
    end = after.search(/\s/);
  // A host that no space follows is not wmctrl's line.
  if (after === '' || (end >= 0 && after[end] !== ' ')) return { className: '', title: '' };
  return { className: rest.slice(0, blank), title: end < 0 ? '' : after.slice(end + 1) };
}

/** Where this host first stands as a word of its own behind another; -1: nowhere. */
function hostAt(rest: string, host: string): number {
  const line = `${rest} `,
    word = `${host} `;
  for (let at = line.indexOf(word, 1); at > 0; at = line.indexOf(word, at + word.length))
    if (line[at - 1]!.trim() === '') return at;
  return -1;
}

const LETTER_BEFORE = /[\p{L}\p{N}]$/u,
  LETTER_AFTER = /^[\p{L}\p{N}]/u;
/** Does a title show this file: its name, or its name without ending as a word of its own? */
export function showsFile(title: string, name: string): boolean {
  if (title.includes(name)) return true;
  const stem = name.replace(/(?<=.)\.[^.]+$/, '');
  const words = title.slice(0, MAX_SEARCHED);
  for (let at = words.indexOf(stem); at >= 0; at = words.indexOf(stem, at + 1))
    if (!LETTER_BEFORE.test(words.slice(Math.max(0, at - 2), at)) && !LETTER_AFTER.test(words.slice(at + stem.length)))
      return true;
  return false;
}

/** Wait until a window shows the file or folder of this name; rejects after the settings' wait. */
export async function waitForWindow(ctx: TaskContext, name: string): Promise<Window> {
  const end = ctx.settings.now() + ctx.settings.waitMs;
  for (;;) {
    checkCancelled(ctx.signal);
    const found = (await windows(ctx)).find((w) => showsFile(w.title, name));
    if (found) return found;
    const left = end - ctx.settings.now();
    if (left <= 0) {
      const why = `no window named ${name} came up within ${ctx.settings.waitMs / 1000} s`;
      throw ctx.verdict ? new Spoiled(why) : new Error(why);
    }
    const s = await ctx.desktop.settle({ maxMs: Math.min(left, 500) });
    if (s.settled && s.ms < LOOK_AGAIN_MS) await ctx.settings.sleep(LOOK_AGAIN_MS, ctx.signal);
  }
}

/** Waits until any window is there, nothing is at work any more, or the time is up. */
export async function waitForAnyWindow(ctx: TaskContext, maxMs: number): Promise<void> {
  const end = ctx.settings.now() + maxMs;
  const none = async (): Promise<boolean> =>
    (await orUndefined(windows(ctx), 'a desktop that cannot be asked is not waited for'))?.length === 0;
  while (ctx.settings.now() < end && (await none())) {
    checkCancelled(ctx.signal);
    if ((await ctx.desktop.settle({ maxMs: 500 })).settled) return;
  }
}

export async function activate(ctx: TaskContext, id: string): Promise<void> {
  await wmctrl(ctx, '-i', '-a', id);
  await ctx.desktop.settle({ maxMs: SETTLE_MS });
}

const flags = (p: SetupParameters<'activate_window'>, verb: string): string =>
  `-${truthy(p.by_class) ? 'x' : ''}${truthy(p.strict) ? 'F' : ''}${verb}`;

/** Our images' Chromium says its own name where tasks mean Google Chrome. */
const ALSO = new Map([
  ['Google Chrome', 'Chromium'],
  ['google-chrome', 'Chromium'],
]);

/** As in OSWorld, a missing window is not an error. */
export async function activateWindow(ctx: TaskContext, p: SetupParameters<'activate_window'>): Promise<void> {
  const also = [...ALSO].find(([name]) => p.window_name.includes(name))?.[1];
  await wmctrl(ctx, flags(p, 'a'), p.window_name);
  if (also !== undefined && (await windows(ctx)).some((w) => w.title.includes(also))) await wmctrl(ctx, '-a', also);
  await ctx.desktop.settle({ maxMs: SETTLE_MS });
}

export async function closeWindow(ctx: TaskContext, p: SetupParameters<'close_window'>): Promise<void> {
  await wmctrl(ctx, flags(p, 'c'), p.window_name);
  await ctx.desktop.settle({ maxMs: SETTLE_MS });
}
