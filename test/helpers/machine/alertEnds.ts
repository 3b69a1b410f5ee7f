import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

/** Where alerts arrive in tests: a program, a server, and a stand-in for the system's program of notifications. */

export interface Program {
  readonly path: string;
  /** Every JSON line that it has read, over all of its starts. */
  heard(): readonly Record<string, unknown>[];
}
/** Keeps what it reads, one line for each time it is started, and ends with a code. It refuses any argument. */
export function program(dir: string, name = 'page-me', code = 0): Program {
  const out = join(dir, `${name}.heard`),
    path = script(
      join(dir, `${name}.sh`),
      `test $# -eq 0 || exit 9\nbody=$(cat)\nprintf '%s\\n' "$body" >> '${out}'\nexit ${code}`,
    );
  return { path, heard: () => linesOf(out).map((l) => JSON.parse(l) as Record<string, unknown>) };
}
/** A folder for PATH with a `notify-send` that keeps its arguments, one call a line. */
export function notifySend(dir: string): { readonly file: string; calls(): readonly (readonly string[])[] } {
  const out = join(dir, 'notify-send.heard'),
    file = script(
      join(dir, 'notify-send'),
      `line=; for a in "$@"; do line="$line$a|"; done\nprintf '%s\\n' "$line" >> '${out}'`,
    );
  return {
    file,
    calls: () => linesOf(out).map((l) => l.split('|').slice(0, -1)),
  };
}
function script(path: string, text: string): string {
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
  return path;
}
const linesOf = (file: string): string[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter((l) => l !== '')
    : [];

export interface Hook {
  readonly url: string;
  readonly heard: { readonly method: string; readonly type: string; readonly path: string; readonly body: unknown }[];
  close(): Promise<void>;
}
/** A server that keeps what is posted to it; `silent`: it never answers. */
export async function hook(
  o: { readonly status?: number; readonly headers?: Readonly<Record<string, string>>; readonly silent?: boolean } = {},
): Promise<Hook> {
  const heard: Hook['heard'] = [];
  const server = createServer((req, res) => {
    let text = '';
    req.on('data', (d: Buffer) => (text += d.toString()));
    req.on('end', () => {
      heard.push({
        method: req.method ?? '',
        type: req.headers['content-type'] ?? '',
        path: req.url ?? '',
        body: text === '' ? undefined : (JSON.parse(text) as unknown),
      });
      if (!o.silent) res.writeHead(o.status ?? 200, o.headers).end();
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    heard,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}
