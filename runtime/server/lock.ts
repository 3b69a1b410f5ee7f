import { createHash } from 'node:crypto';
import { realpath, rm, stat } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { userInfo } from 'node:os';

/** Held while the process lives; the kernel lets go of it, however the process ends. */
export interface Lock {
  release(): Promise<void>;
}

/**
 * One daemon per storage folder; undefined when another process has the lock. Linux: a socket in the abstract name
 * space; Windows: a named pipe; both vanish with their process. macOS has neither, so there a socket file whose owner
 * no longer answers is taken over; starters hold `start.lock` meanwhile (extension/daemon/launcher.ts), so that two do
 * not do it at once.
 */
export async function takeLock(storage: string): Promise<Lock | undefined> {
  const name = `dart-studio-${process.platform === 'win32' ? userInfo().username : userInfo().uid}-${createHash(
    'sha256',
  )
    .update(await realpath(storage))
    .digest('hex')
    .slice(0, 32)}`;
  if (process.platform === 'linux') return held(await listen(`\0${name}`));
  if (process.platform === 'win32') return held(await listen(`\\\\.\\pipe\\${name}`));
  return takeSocketFile(`/tmp/${name}.sock`); // not tmpdir(): every process must come to the same path
}

/** For systems without sockets that the kernel removes. */
export async function takeSocketFile(path: string): Promise<Lock | undefined> {
  const first = await listen(path);
  if (first) return held(first);
  const before = await inode(path);
  if ((await answers(path)) || (await inode(path)) !== before) return undefined;
  await rm(path, { force: true });
  const server = await listen(path);
  if (!server) return undefined;
  const mine = await inode(path);
  // Somebody who found the same dead socket may have removed ours: then theirs counts.
  if ((await answers(path)) && (await inode(path)) === mine) return held(server);
  server.close();
  return undefined;
}

const held = (server: Server | undefined): Lock | undefined =>
  server && { release: () => new Promise((done) => server.close(() => done())) };
const inode = async (path: string): Promise<number | undefined> => (await stat(path).catch(() => undefined))?.ino;

function listen(path: string): Promise<Server | undefined> {
  return new Promise((done, fail) => {
    const server = createServer((s) => {
      s.on('error', () => undefined);
      s.end();
    });
    server.once('error', (e: NodeJS.ErrnoException) => {
      if (e.code === 'EADDRINUSE') done(undefined);
      else fail(e);
    });
    server.listen(path, () => done(server));
  });
}
function answers(path: string): Promise<boolean> {
  return new Promise((done) => {
    const s = connect(path, () => {
      s.destroy();
      done(true);
    });
    s.once('error', () => done(false));
  });
}
