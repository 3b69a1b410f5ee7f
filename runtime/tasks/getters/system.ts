import type { ExecResult } from '../../cluster/types.js';
import type { TaskCommand } from '../command.js';
import { asText, runRaw } from '../command.js';
import type { TaskContext } from '../context.js';
import { baseName, desktopPath } from '../context.js';
import { windows } from '../setup/windows.js';
import type { Value } from '../values.js';
import { FileValue } from '../values.js';
import { MAX_TEXT_BYTES } from '../metrics/types.js';
import { TooLarge } from './files.js';
import type { Getter } from './types.js';

/** Output of a command inside the desktop; null when it cannot be run or is not text. */
export const vmCommand =
  (stream: 'stdout' | 'stderr'): Getter =>
  async (ctx, c) => {
    const raw = await runRaw(ctx, c as unknown as TaskCommand);
    if (raw === undefined) return null;
    if (Math.max(raw.stdout.length, raw.stderr.length) > MAX_TEXT_BYTES)
      throw new TooLarge(`the command wrote more than ${MAX_TEXT_BYTES / 2 ** 20} MiB`);
    return asText(raw)?.[stream] ?? null;
  };

/** A command of our own, judged as those of task files are. */
export const look = (
  ctx: TaskContext,
  argv: readonly string[],
  what: string,
  needs: 'nothing' | 'applications',
): Promise<ExecResult> => {
  const o = { timeoutMs: ctx.settings.commandMs, signal: ctx.signal };
  return ctx.verdict ? ctx.verdict.exec(argv, o, what, needs) : ctx.desktop.exec(argv, o);
};

export const screenSize: Getter = (ctx) =>
  Promise.resolve({ width: ctx.desktop.screen.width, height: ctx.desktop.screen.height });

/** Size of the first window whose class contains the name; null when there is none. */
export const windowSize: Getter = async (ctx, c) => {
  const name = String(c['app_class_name']).toLowerCase();
  const w = (await windows(ctx)).find((x) => x.className.toLowerCase().includes(name));
  return w ? { width: w.width, height: w.height } : null;
};

/** VLC's web interface (port 8080, password `password`), asked from inside the desktop. */
const VLC_STATUS = `import base64,sys,urllib.request as u
r=u.Request('http://127.0.0.1:8080/requests/status.xml',headers={'Authorization':'Basic '+base64.b64encode(b':password').decode()})
sys.stdout.buffer.write(u.build_opener(u.ProxyHandler({})).open(r,timeout=10).read())`;

/** The state of VLC's player; null when VLC does not answer. */
export const vlcStatus: Getter = async (ctx, c) => {
  const r = await look(ctx, ['python3', '-c', VLC_STATUS], 'that asks VLC', 'applications');
  if (r.timedOut || r.code !== 0) return null;
  const name = String(c['dest'] ?? 'status.xml');
  ctx.cache.set(name, r.stdout);
  return new FileValue(name, r.stdout);
};

/** Most entries of a folder that are listed. */
const MAX_ENTRIES = '20000';
/** Longest list of them, bytes. */
const MAX_LISTING = 4 * 1024 * 1024;

/** OSWorld's tree {type, name, children}; null when the folder is not there. Names in byte order. */
export const listDirectory: Getter = async (ctx, c) => {
  const path = desktopPath(String(c['path']));
  ctx.looked?.add(path);
  const r = await look(
    ctx,
    [
      '/bin/sh',
      '-c',
      'test -d "$1" && find -H "$1" -mindepth 1 -printf "%y %P\\0" | head -z -n "$2" | head -c "$3"',
      'sh',
      path,
      MAX_ENTRIES,
      String(MAX_LISTING),
    ],
    `that lists ${path}`,
    'nothing',
  );
  if (r.timedOut) throw new Error(`listing ${path} took too long`);
  if (r.code !== 0) return null;
  if (r.stdout.length >= MAX_LISTING) throw new TooLarge(`the names below ${path} fill more than 4 MiB`);
  return directoryTree(
    baseName(path),
    r.stdout
      .toString('utf8')
      .split('\0')
      .filter((l) => l !== ''),
  );
};

interface Node {
  readonly type: string;
  readonly name: string;
  readonly children?: Node[];
}

/** Entries are `<find type> <relative path>`. */
export function directoryTree(root: string, entries: readonly string[]): Value {
  const top: Node = { type: 'directory', name: root, children: [] };
  const folders = new Map<string, Node>([['', top]]);
  const sorted = entries
    .map((entry) => ({ entry, at: entry.slice(2) }))
    .sort((a, b) => (a.at < b.at ? -1 : Number(a.at > b.at)));
  for (const { entry, at } of sorted) {
    const parent = folders.get(at.includes('/') ? at.slice(0, at.lastIndexOf('/')) : '');
    const node: Node = entry.startsWith('d')
      ? { type: 'directory', name: baseName(at), children: [] }
      : { type: 'file', name: baseName(at) };
    if (node.children) folders.set(at, node);
    parent?.children?.push(node);
  }
  return top as unknown as Value;
}
