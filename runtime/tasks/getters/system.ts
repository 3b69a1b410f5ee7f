import type { TaskCommand } from '../command.js';
import { runCommand } from '../command.js';
import { baseName, desktopPath } from '../context.js';
import { windows } from '../setup/windows.js';
import type { Value } from '../values.js';
import { FileValue } from '../values.js';
import type { Getter } from './types.js';

/** Output of a command inside the desktop; null when it cannot be run. */
export const vmCommand =
  (stream: 'stdout' | 'stderr'): Getter =>
  async (ctx, c) =>
    (await runCommand(ctx, c as unknown as TaskCommand))?.[stream] ?? null;

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

/** What VLC plays; null when VLC does not answer. */
export const vlcStatus: Getter = async (ctx, c) => {
  const r = await ctx.desktop.exec(['python3', '-c', VLC_STATUS], {
    timeoutMs: ctx.settings.commandMs,
    signal: ctx.signal,
  });
  if (r.timedOut || r.code !== 0) return null;
  const name = String(c['dest'] ?? 'status.xml');
  ctx.cache.set(name, r.stdout);
  return new FileValue(name, r.stdout);
};

/** More entries than this are not listed. */
const MAX_ENTRIES = '20000';

/** OSWorld's tree {type, name, children}; null when the folder is not there. Names in byte order. */
export const listDirectory: Getter = async (ctx, c) => {
  const path = desktopPath(String(c['path']));
  const r = await ctx.desktop.exec(
    [
      '/bin/sh',
      '-c',
      'test -d "$1" && find -H "$1" -mindepth 1 -printf "%y %P\\0" | head -z -n "$2"',
      'sh',
      path,
      MAX_ENTRIES,
    ],
    { timeoutMs: ctx.settings.commandMs, signal: ctx.signal },
  );
  if (r.timedOut) throw new Error(`listing ${path} took too long`);
  if (r.code !== 0) return null;
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
  for (const entry of [...entries].sort((a, b) => (a.slice(2) < b.slice(2) ? -1 : 1))) {
    const at = entry.slice(2),
      parent = folders.get(at.includes('/') ? at.slice(0, at.lastIndexOf('/')) : '');
    const node: Node = entry.startsWith('d')
      ? { type: 'directory', name: baseName(at), children: [] }
      : { type: 'file', name: baseName(at) };
    if (node.children) folders.set(at, node);
    parent?.children?.push(node);
  }
  return top as unknown as Value;
}
