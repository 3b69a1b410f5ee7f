import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import { WebSocket } from 'ws';
import * as methods from '../../runtime/protocol/methods.js';
import { socketPath } from '../../runtime/protocol/version.js';
import {
  cleanUp,
  entry,
  folder,
  removeFolders,
  startDaemon,
  wire,
  type Daemon,
  type Wire,
} from '../helpers/daemon/harness.js';
import { run } from '../helpers/daemon/memoryService.js';
import type { Target } from './fuzz.js';
import { mutatedBytes, mutatedJson } from './mutate.js';

/** Frames that a client sends to a daemon in a process of its own; another client is served meanwhile. */
export function rpcFrames(): Target {
  let d: Daemon, good: Wire;
  const frames = [
    { jsonrpc: '2.0', id: 1, method: 'test/echo', params: { a: 1 } },
    {
      jsonrpc: '2.0',
      id: 2,
      method: methods.hello.method,
      params: { protocol: 1, build: { version: '1', time: 1 }, client: 'x' },
    },
    { jsonrpc: '2.0', id: 3, method: methods.subscribe.method, params: { run, sinceSeq: 0, types: ['note'] } },
    { jsonrpc: '2.0', id: 4, method: 'run/get', params: { run } },
    { jsonrpc: '2.0', id: 5, method: 'trajectory/list', params: { run, bytes: 10 } },
    { jsonrpc: '2.0', id: 6, method: methods.watchDesktop.method, params: { desktop: 'd1', maxFps: 5 } },
    { jsonrpc: '2.0', method: '$/cancelRequest', params: { id: 4 } },
    { jsonrpc: '2.0', id: 1, result: {} },
    { jsonrpc: '2.0', id: 7, method: 'run/dance', params: {} },
  ].map((f) => JSON.stringify(f));
  return {
    name: 'rpc frames',
    async open() {
      await entry();
      d = await startDaemon(folder());
      good = await wire(d.record);
      await good.hello();
    },
    make(r) {
      const sent = Array.from({ length: 1 + r.int(20) }, () =>
          r.int(20) === 0 ? mutatedBytes(r, Buffer.from(r.pick(frames))) : mutatedJson(r, r.pick(frames)),
        ).filter((f) => !f.toString().includes('shutdown') && !f.toString().includes('drain')),
        hello = r.int(4) > 0;
      return {
        input: sent.map((s) => s.toString('utf8').slice(0, 200)).join('\n'),
        run: async () => {
          await good.rpc.sendRequest('test/loop', {});
          const bad = new WebSocket(`ws://127.0.0.1:${d.record.port}${socketPath}`, {
            headers: { Authorization: `Bearer ${d.record.token}` },
          });
          bad.on('error', () => undefined).on('message', () => undefined);
          await once(bad, 'open');
          if (hello) bad.send(frames[1]!);
          for (const s of sent) bad.send(s);
          await good.rpc.sendRequest('test/echo', {});
          await good.rpc.sendRequest('test/echo', {});
          if (r.int(2) === 0) bad.close();
          else bad.terminate();
        },
      };
    },
    async elsewhere() {
      const { longestMs } = await good.rpc.sendRequest<{ longestMs: number }>('test/loop', {}),
        kb = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${d.child.pid}/status`, 'utf8'))?.[1];
      return { longestMs, bytes: Number(kb) * 1024 };
    },
    async close() {
      await cleanUp();
      removeFolders();
    },
  };
}
