import { cdpClose, cdpLoaded, cdpOpen, cdpTargets, NoBrowser } from '../cdp.js';
import { withoutSlashes } from '../../foreign/address.js';
import type { TaskContext } from '../context.js';
import { HOME } from '../context.js';
import type { SetupParameters } from '../taskFile.js';
import { Spoiled } from '../spoiled.js';

/** Longest wait for one page to load, ms (OSWorld: 60 s). */
const LOAD_MS = 20_000;

/** Path of Chrome's history in a desktop, and OSWorld's copy of an empty one. */
export const HISTORY = `${HOME}/.config/google-chrome/Default/History`;
export const EMPTY_HISTORY =
  'https://huggingface.co/datasets/xlangai/ubuntu_osworld_file_cache/resolve/main/chrome/44ee5668-ecd5-4366-a6ce-c1c9b8d4e938/history_empty.sqlite?download=true';

/**
 * Opens pages in the browser that a step before has started, one tab each, and closes the tab that it started with. A
 * page that does not load stays as it is.
 */
export async function openTabs(ctx: TaskContext, p: SetupParameters<'chrome_open_tabs'>): Promise<void> {
  const before = await listening(ctx),
    first = before.find((t) => t.type === 'page');
  for (const [i, url] of p.urls_to_open.entries()) {
    const page = await cdpOpen(ctx, url);
    await cdpLoaded(ctx, page.id, LOAD_MS);
    if (i === 0 && first) await cdpClose(ctx, first.id);
  }
}

/** Closes the tabs that show these addresses. */
export async function closeTabs(ctx: TaskContext, p: SetupParameters<'chrome_close_tabs'>): Promise<void> {
  const tabs = (await listening(ctx)).filter((t) => t.type === 'page');
  for (const url of p.urls_to_close) for (const t of tabs) if (sameAddress(t.url, url)) await cdpClose(ctx, t.id);
}

/** Pages of the browser, once it listens. */
async function listening(ctx: TaskContext): Promise<Awaited<ReturnType<typeof cdpTargets>>> {
  try {
    return await cdpTargets(ctx, ctx.settings.waitMs);
  } catch (e) {
    if (e instanceof NoBrowser && ctx.verdict) throw new Spoiled(e.message);
    throw e;
  }
}

/**
 * Compares addresses without scheme, `www.`, trailing slash, port and fragment; the case of the host does not matter.
 */
export function sameAddress(a: string, b: string): boolean {
  const plain = (s: string): string => {
    try {
      const u = new URL(/^[a-z][a-z0-9+.-]*:/i.test(s) ? s : `https://${s}`);
      return `${u.hostname.replace(/^www\./, '')}${withoutSlashes(u.pathname)}${u.search}`;
    } catch {
      return s;
    }
  };
  return plain(a) === plain(b);
}

/** Adds visits to Chrome's history, which must not be running. Input: file, then the visits as JSON. */
const ADD_VISITS = `
import json, sqlite3, sys, time
c = sqlite3.connect(sys.argv[1])
now = time.time() + 11644473600
for v in json.load(sys.stdin):
    at = int((now - v['visit_time_from_now_in_seconds']) * 1000000)
    n = c.execute('INSERT INTO urls (url, title, visit_count, typed_count, last_visit_time, hidden) VALUES (?, ?, 1, 0, ?, 0)', (v['url'], v['title'], at)).lastrowid
    c.execute('INSERT INTO visits (url, visit_time, from_visit, transition, segment_id, visit_duration) VALUES (?, ?, 0, 805306368, 0, 0)', (n, at))
c.commit()
`;

/** Fills Chrome's history: the profile's own where there is one, else OSWorld's empty one. */
export async function updateHistory(ctx: TaskContext, p: SetupParameters<'update_browse_history'>): Promise<void> {
  const there = await ctx.desktop.exec(['test', '-s', HISTORY], { timeoutMs: 10_000, signal: ctx.signal });
  if (there.code !== 0)
    await ctx.desktop.writeFile(HISTORY, await ctx.assets.read(EMPTY_HISTORY, { name: 'history_empty.sqlite' }));
  const r = await ctx.desktop.exec(['python3', '-c', ADD_VISITS, HISTORY], {
    stdin: JSON.stringify(p.history),
    timeoutMs: 30_000,
    signal: ctx.signal,
  });
  if (r.code !== 0) throw new Error(`the history cannot be written: ${r.stderr.toString('utf8').trim()}`);
}

/** Sets the picture of the desktop's background, as GNOME's settings name it. */
export async function changeWallpaper(ctx: TaskContext, p: SetupParameters<'change_wallpaper'>): Promise<void> {
  const r = await ctx.desktop.exec(
    ['gsettings', 'set', 'org.gnome.desktop.background', 'picture-uri', `file://${p.path}`],
    { timeoutMs: 10_000, signal: ctx.signal },
  );
  if (r.code !== 0) throw new Error(`the wallpaper cannot be set: ${r.stderr.toString('utf8').trim()}`);
}
