import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { processes } from './processes.js';

/** What a stopped daemon must not leave in its folders and among processes: sandboxes, locks, sockets, temporary files. */
export function orphans(base: string, folders: readonly string[], daemon: number): string[] {
  const files = (dir: string): string[] =>
    existsSync(dir)
      ? readdirSync(dir, { recursive: true, withFileTypes: true }).map((e) => join(e.parentPath, e.name))
      : [];
  // A lock that was let go of says so; what it lay in stays, for the next holder to see. So does that of a daemon that
  // was killed: nobody has asked for it since.
  const held = (lock: string): boolean =>
    !existsSync(join(lock, 'released.json')) &&
    (JSON.parse(readFileSync(join(lock, 'owner.json'), 'utf8')) as { pid: number }).pid === daemon;
  const bad = (f: string): boolean =>
    /\.tmp$|\.replaced$|\/reserve$|\/\.weights(\/|$)|\/daemon\.json$|\.sock$/.test(f) ||
    (/\/lock\/\d+$/.test(f) && held(f));
  return [
    ...processes()
      .filter((p) => p.pid !== process.pid && belongs(p.pid, base))
      .map((p) => `${p.pid} ${p.what.slice(0, 100)}`),
    ...folders.flatMap(files).filter(bad),
  ];
}
/** Whether it was started by the daemon of this controller: children have its environment. */
export function belongs(pid: number, base: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`DART_CHAOS=${base}`);
  } catch {
    return false;
  }
}
