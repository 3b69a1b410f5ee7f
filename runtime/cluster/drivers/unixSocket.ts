import { connect, type Socket } from 'node:net';

/** Connects to a unix socket; either side may end its half first. Rejects with the socket's error. */
export function unixSocket(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const s = connect({ path, allowHalfOpen: true });
    s.once('error', reject);
    s.once('connect', () => {
      s.off('error', reject);
      resolve(s);
    });
  });
}
