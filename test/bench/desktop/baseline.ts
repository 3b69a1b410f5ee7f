import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, watch } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import type { Desktop } from '../../../runtime/cluster/types.js';
import type { Point } from '../../../runtime/domain/index.js';

const FOLDER = '/tmp/osworld-style';

/**
 * One desktop driven the way OSWorld drives its machines: HTTP in, a Python process per action, a fixed pause, PNG out.
 */
export class Baseline {
  readonly #socketPath: string;
  private constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /** Starts the server inside the desktop; it is the desktop's guest like any application. */
  static async start(d: Desktop): Promise<Baseline> {
    const source = join(process.cwd(), 'test/bench/desktop/osworld_style');
    for (const f of ['server.py', 'minigui.py']) await d.writeFile(`${FOLDER}/${f}`, readFileSync(join(source, f)));
    const nonce = randomBytes(8).toString('hex');
    await d.spawn(['python3', `${FOLDER}/server.py`, `${FOLDER}/sock`], {
      env: { BENCH_NONCE: nonce, PYTHONPATH: FOLDER },
    });
    const pid = findProcess(`BENCH_NONCE=${nonce}`);
    if (pid === undefined)
      throw new Error("the baseline's server is not to be seen in /proc (the bench needs the fast path)");
    const b = new Baseline(`/proc/${pid}/root${FOLDER}/sock`);
    await appears(`/proc/${pid}/root${FOLDER}`, 'sock', 10_000);
    // The socket's file is there a moment before anyone listens on it.
    for (let tries = 0; ; tries++) {
      try {
        await b.screenshot();
        break;
      } catch (e) {
        if (tries > 200 || (e as NodeJS.ErrnoException).code !== 'ECONNREFUSED') throw e;
        await new Promise((r) => {
          setTimeout(r, 10);
        });
      }
    }
    return b;
  }

  async click(p: Point): Promise<void> {
    const body = JSON.stringify({
      command: ['python3', '-c', `import minigui; import time; minigui.click(${p.x}, ${p.y})`],
    });
    const r = JSON.parse((await this.#http('POST', '/execute', body)).toString()) as {
      returncode: number;
      error: string;
    };
    if (r.returncode !== 0) throw new Error(`the baseline's click failed: ${r.error}`);
  }

  screenshot(): Promise<Buffer> {
    return this.#http('GET', '/screenshot');
  }

  #http(method: string, path: string, body?: string): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const r = request(
        {
          socketPath: this.#socketPath,
          method,
          path,
          agent: false,
          headers: body ? { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) } : {},
        },
        (res) => {
          const parts: Buffer[] = [];
          res.on('data', (d: Buffer) => parts.push(d));
          res.on('end', () =>
            res.statusCode === 200
              ? resolve(Buffer.concat(parts))
              : reject(new Error(`the baseline answered ${res.statusCode}`)),
          );
          res.on('error', reject);
        },
      );
      r.on('error', reject);
      r.end(body);
    });
  }
}

/** The host's pid of the process with this entry in its environment. */
export function findProcess(entry: string): number | undefined {
  for (const p of readdirSync('/proc')) {
    if (!/^\d+$/.test(p)) continue;
    try {
      if (readFileSync(`/proc/${p}/environ`, 'latin1').split('\0').includes(entry)) return Number(p);
    } catch {
      /* ended, or not ours to read */
    }
  }
  return undefined;
}

/** Resolves when the file is there. */
async function appears(folder: string, name: string, maxMs: number): Promise<void> {
  const file = join(folder, name);
  await new Promise<void>((resolve, reject) => {
    const done = (e?: Error): void => {
      clearTimeout(timer);
      w.close();
      if (e) reject(e);
      else resolve();
    };
    const timer = setTimeout(() => done(new Error(`${file} did not appear within ${maxMs} ms`)), maxMs);
    const w = watch(folder, () => {
      if (existsSync(file)) done();
    });
    if (existsSync(file)) done();
  });
}
