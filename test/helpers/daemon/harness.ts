import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { build } from 'esbuild';
import { existsSync, mkdtempSync, readFileSync, rmSync, watch } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createMessageConnection, type MessageConnection } from 'vscode-jsonrpc/node';
import { WebSocket } from 'ws';
import { DaemonClient, type DaemonClientOptions } from '../../../extension/daemon/client.js';
import { parseDiscovery } from '../../../extension/daemon/discovery.js';
import * as methods from '../../../runtime/protocol/methods.js';
import type { Method } from '../../../runtime/protocol/requests.js';
import { SocketReader, SocketWriter } from '../../../runtime/protocol/transport.js';
import { discoveryFile, protocolVersion, socketPath, type DiscoveryRecord } from '../../../runtime/protocol/version.js';
import type { DaemonState } from '../../../webview/protocol.js';
import { commandLine } from '../machine/processes.js';

const folders: string[] = [],
  pids = new Set<number>(),
  clients = new Set<DaemonClient>(),
  sockets = new Set<WebSocket>();
const bundles = new Map<string, string>();

/** A request that the protocol does not have, or with parameters that it does not allow. */
export const raw = (c: DaemonClient, method: string, params: unknown, signal?: AbortSignal): Promise<unknown> =>
  c.call(method as Method, params as never, signal);

/** The bundle of a program beside this one, made once per test file. */
export async function entry(name: 'entry' | 'window' = 'entry'): Promise<string> {
  const there = bundles.get(name);
  if (there) return there;
  const dir = mkdtempSync(join(tmpdir(), 'dart-daemon-entry-')),
    outfile = join(dir, `${name}.mjs`);
  folders.push(dir);
  await build({
    entryPoints: [`test/helpers/daemon/${name}.ts`],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    logLevel: 'error',
    external: ['bufferutil', 'utf-8-validate'],
    banner: { js: "import { createRequire as __cr } from 'node:module'; const require = __cr(import.meta.url);" },
  });
  bundles.set(name, outfile);
  return outfile;
}
export function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'dart-daemon-'));
  folders.push(dir);
  return dir;
}
/** After each test: nothing that it started lives on. */
export async function cleanUp(): Promise<void> {
  for (const c of clients) c.dispose();
  for (const s of sockets) s.terminate();
  for (const p of pids) {
    try {
      if (commandLine(p).includes('serve')) process.kill(p, 'SIGKILL');
    } catch {
      /* it has ended */
    }
  }
  clients.clear();
  sockets.clear();
  pids.clear();
}
export function removeFolders(): void {
  for (const f of folders.splice(0)) rmSync(f, { recursive: true, force: true });
  bundles.clear();
}

/** Resolves when `so` holds, looked at whenever something in the folder changes. */
export async function when<T>(dir: string, so: () => T | undefined | false): Promise<T> {
  for (;;) {
    let wake: () => void = () => undefined;
    const changed = new Promise<void>((go) => {
        wake = go;
      }),
      w = watch(dir, () => wake());
    try {
      const v = so();
      if (v !== undefined && v !== false) return v as T;
      await changed;
    } finally {
      w.close();
    }
  }
}
export function record(storage: string): DiscoveryRecord | undefined {
  const f = join(storage, discoveryFile);
  return existsSync(f) ? parseDiscovery(readFileSync(f, 'utf8')) : undefined;
}
export const marks = (storage: string): string[] => {
  const f = join(storage, 'marks');
  return existsSync(f) ? readFileSync(f, 'utf8').trim().split('\n') : [];
};
export const daemonLog = (storage: string): string => readFileSync(join(storage, 'daemon.log'), 'utf8');

export interface Daemon {
  readonly child: ChildProcess;
  readonly record: DiscoveryRecord;
  /** Exit code or signal. */
  readonly ended: Promise<number | string>;
  output(): string;
}
/** A daemon process, started by hand. */
export async function startDaemon(storage: string, env: Record<string, string> = {}): Promise<Daemon> {
  const d = await spawnDaemon(storage, env);
  const r = await Promise.race([
    when(storage, () => {
      const r = record(storage);
      return r?.pid === d.child.pid ? r : undefined;
    }),
    d.ended.then((c) => {
      throw new Error(`the daemon ended (${c}): ${d.output()}`);
    }),
  ]);
  return { ...d, record: r };
}
export async function spawnDaemon(
  storage: string,
  env: Record<string, string> = {},
  o: { readonly node?: string; readonly in?: (command: readonly string[]) => string[] } = {},
): Promise<Omit<Daemon, 'record'>> {
  const [program, ...args] = (o.in ?? ((c) => [...c]))([o.node ?? process.execPath, await entry(), 'serve', storage]);
  const child = spawn(program!, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  pids.add(child.pid!);
  let text = '';
  for (const s of [child.stdout, child.stderr])
    s.on('data', (d: Buffer) => {
      text += d.toString();
    });
  return {
    child,
    ended: once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string),
    output: () => text,
  };
}
/** A window in a process of its own; resolves when it is attached. Killing it is closing the window. */
export async function startWindow(
  storage: string,
): Promise<{ readonly child: ChildProcess; readonly daemon: number; readonly started: number | undefined }> {
  const child = spawn(process.execPath, [await entry('window'), storage, await entry()], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let text = '';
  for await (const d of child.stdout) {
    text += String(d);
    const daemon = /attached to (\d+)/.exec(text)?.[1],
      started = /^started the runtime \(pid (\d+)\)/m.exec(text)?.[1];
    if (started) pids.add(Number(started));
    if (daemon) return { child, daemon: Number(daemon), started: started === undefined ? undefined : Number(started) };
  }
  throw new Error(`the window ended: ${text}`);
}

export interface TestClient {
  readonly client: DaemonClient;
  readonly said: string[];
  readonly states: DaemonState[];
  reaches(state: DaemonState): Promise<void>;
}
export async function testClient(storage: string, o: Partial<DaemonClientOptions> = {}): Promise<TestClient> {
  const said: string[] = [],
    states: DaemonState[] = [];
  const client = new DaemonClient({
    storage,
    runtime: await entry(),
    build: { version: '1.2.3', time: 1000 },
    client: 'test',
    log: (level, m) => {
      said.push(`${level} ${m}`);
      const pid = /^started the runtime \(pid (\d+)\)/.exec(m)?.[1];
      if (pid) pids.add(Number(pid));
    },
    ...o,
  });
  clients.add(client);
  client.onState((s) => states.push(s));
  return {
    client,
    said,
    states,
    reaches: (state) =>
      client.state === state
        ? Promise.resolve()
        : new Promise((done) => {
            const off = client.onState((s) => {
              if (s === state) {
                off();
                done();
              }
            });
          }),
  };
}

export interface Wire {
  readonly socket: WebSocket;
  readonly rpc: MessageConnection;
  readonly binary: Buffer[];
  readonly notes: { readonly method: string; readonly params: unknown }[];
  readonly closed: Promise<number>;
  /** Resolves with what `look` finds, looked at whenever something came in. */
  hear<T>(look: () => T | undefined): Promise<T>;
  hello(protocol?: number): Promise<methods.HelloResult>;
}
/** A client without the extension's client. */
export async function wire(r: DiscoveryRecord, headers: Record<string, string> = {}): Promise<Wire> {
  const socket = new WebSocket(`ws://127.0.0.1:${r.port}${socketPath}`, {
    headers: { Authorization: `Bearer ${r.token}`, ...headers },
  });
  sockets.add(socket);
  await once(socket, 'open');
  const reader = new SocketReader(),
    binary: Buffer[] = [],
    notes: { method: string; params: unknown }[] = [],
    looks = new Set<() => void>();
  const came = (): void => {
    for (const l of [...looks]) l();
  };
  const rpc = createMessageConnection(
    reader,
    new SocketWriter(
      (t) =>
        new Promise((done, fail) =>
          socket.send(t, (e) => {
            if (e) fail(e);
            else done();
          }),
        ),
    ),
  );
  rpc.onNotification((method, params) => {
    notes.push({ method, params });
    came();
  });
  socket.on('message', (d, isBinary) => {
    if (isBinary) {
      binary.push(d as Buffer);
      came();
    } else reader.push(d.toString());
  });
  socket.on('error', () => undefined);
  rpc.listen();
  const hear = <T>(look: () => T | undefined): Promise<T> =>
    new Promise((done) => {
      const l = (): void => {
        const v = look();
        if (v !== undefined) {
          looks.delete(l);
          done(v);
        }
      };
      looks.add(l);
      l();
    });
  return {
    socket,
    rpc,
    binary,
    notes,
    hear,
    closed: once(socket, 'close').then(([code]) => code as number),
    hello: (protocol = protocolVersion) =>
      rpc.sendRequest(methods.hello, { protocol, build: { version: '1.2.3', time: 1000 }, client: 'wire' }),
  };
}
