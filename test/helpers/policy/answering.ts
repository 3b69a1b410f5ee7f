import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach } from 'vitest';

/** Servers of this file's tests that give every request one answer; each test's are closed with it. */
export function answering(): (text: string) => Promise<string> {
  const servers: Server[] = [];
  afterEach(async () => {
    for (const s of servers.splice(0)) {
      s.closeAllConnections();
      await new Promise<void>((done) => s.close(() => done()));
    }
  });
  return async (text) => {
    const s = createServer((req, res) => {
      req.resume();
      res.end(text);
    });
    servers.push(s);
    await new Promise<void>((done) => s.listen(0, '127.0.0.1', done));
    return `http://127.0.0.1:${(s.address() as AddressInfo).port}`;
  };
}
