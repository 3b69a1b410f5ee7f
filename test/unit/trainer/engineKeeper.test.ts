import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { StudioError } from '../../../runtime/domain/index.js';
import { EngineKeeper, type KeeperOptions } from '../../../runtime/trainer/engine/keeper.js';
import { serveEngine } from '../../../runtime/trainer/engine/serve.js';

/** An engine in twelve lines: a server that asks for its key, ends with its standard input, and dies when told to. */
const ENGINE = `
const http = require('node:http');
const port = Number(process.argv.find((a) => a.startsWith('--port=')).slice(7));
if (require('node:fs').existsSync(process.env.BROKEN)) { console.error('RuntimeError: CUDA out of memory'); process.exit(1); }
if (process.argv.includes('--end-with-stdin')) process.stdin.on('end', () => process.exit(0)).resume();
http.createServer((q, r) => {
  if (q.headers['x-api-key'] !== process.env.DART_ENGINE_API_KEY) { r.statusCode = 401; return r.end(); }
  if (q.url === '/die') return process.kill(process.pid, 'SIGKILL');
  r.end(String(process.pid));
}).listen(port, '127.0.0.1', function () {
  if (process.argv.includes('--mute')) return;
  console.log(JSON.stringify({ event: 'ready', url: 'http://127.0.0.1:' + this.address().port, device: 'cpu' }));
});
`;

const quick = { baseMs: 10, maxMs: 20 };

describe.skipIf(process.platform === 'win32')('an engine that is kept', () => {
  let dir: string, python: string;
  const keepers: EngineKeeper[] = [],
    notes: string[] = [],
    givenUp: StudioError[] = [];
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'engine-keeper-'));
    python = join(dir, 'python');
    await writeFile(join(dir, 'engine.cjs'), ENGINE);
    await writeFile(python, `#!/bin/sh\nexec '${process.execPath}' '${join(dir, 'engine.cjs')}' "$@"\n`, {
      mode: 0o755,
    });
    process.env['BROKEN'] = join(dir, 'broken');
  });
  afterEach(async () => {
    await Promise.all(keepers.splice(0).map((k) => k.close()));
    notes.length = givenUp.length = 0;
    delete process.env['BROKEN'];
    await rm(dir, { recursive: true, force: true });
  });

  async function keep(o: Partial<KeeperOptions> = {}): Promise<EngineKeeper> {
    const k = await EngineKeeper.start(
      {
        launch: ({ port, key, signal }) =>
          serveEngine({
            environment: { python, folder: dir, installed: false },
            source: dir,
            args: [`--port=${port}`],
            key,
            own: true,
            signal,
          }),
        onNote: (text) => notes.push(text),
        onGivenUp: (e) => givenUp.push(e),
        restart: quick,
        ...o,
      },
      new AbortController().signal,
    );
    keepers.push(k);
    return k;
  }
  const ask = async (k: EngineKeeper, path = '/'): Promise<string> =>
    (await k.fetch(`${k.url}${path}`, { headers: { 'x-api-key': k.key } })).text();
  const alive = (pid: number): boolean => {
    try {
      process.kill(pid, 0);
      return true;
    } catch {
      return false;
    }
  };

  it('answers whoever has its key, and is gone when it is let go', async () => {
    const k = await keep(),
      pid = Number(await ask(k));
    expect(pid).toBe(k.pid);
    expect((await fetch(k.url)).status).toBe(401);
    expect(k.key).toMatch(/^[0-9a-f]{64}$/);
    await k.close();
    expect(alive(pid)).toBe(false);
    await expect(ask(k)).rejects.toThrow();
  });

  it('comes back at the same address when it was killed, and calls wait for it', async () => {
    const k = await keep(),
      { url } = k,
      first = await ask(k);
    await expect(ask(k, '/die')).rejects.toThrow();
    // The death is known only a moment after the call broke.
    await until(() => notes.length > 0);
    expect(notes[0]).toMatch(/^The engine ended \(ended by SIGKILL\).*memory.*started again \(1 of 5\)/s);
    const second = await ask(k);
    expect(second).not.toBe(first);
    expect(k.url).toBe(url);
    expect(notes[1]).toContain('is back');
    expect(givenUp).toEqual([]);
  });

  it('is given up when it dies again and again, with its last words and what to lower', async () => {
    const k = await keep({ restart: { ...quick, attempts: 2 } });
    await writeFile(join(dir, 'broken'), '');
    await expect(ask(k, '/die')).rejects.toThrow();
    await until(() => givenUp.length > 0);
    expect(givenUp[0]!.error.kind).toBe('engine.unavailable');
    expect(givenUp[0]!.message).toContain('CUDA out of memory');
    expect(givenUp[0]!.error.remedy).toContain('trainer.remote.options.microBatchTokens');
    // Nobody waits for what never comes.
    await expect(ask(k)).rejects.toMatchObject({ error: { kind: 'engine.unavailable' } });
    expect(notes).toHaveLength(2);
  });

  it('lets work begin anew that its death broke, and no other', async () => {
    const k = await keep();
    let began = 0;
    const done = await k.through(async () => (began++ === 0 ? ask(k, '/die') : ask(k)));
    expect([began, Number(done)]).toEqual([2, k.pid]);
    const own = k.through(() => {
      began++;
      return Promise.reject(new Error('its own fault'));
    });
    await expect(own).rejects.toThrow('its own fault');
    expect(began).toBe(3);
  });

  it('starts counting anew after it has trained something', async () => {
    const k = await keep({ restart: { ...quick, attempts: 1 } });
    for (let i = 0; i < 3; i++) {
      const seen = notes.length;
      await expect(ask(k, '/die')).rejects.toThrow();
      await until(() => notes.length > seen);
      await ask(k);
      k.progressed();
    }
    expect(givenUp).toEqual([]);
  });

  it('says why it did not start, and leaves nothing behind when it says nothing', async () => {
    const environment = { python, folder: dir, installed: false };
    await writeFile(join(dir, 'broken'), '');
    await expect(serveEngine({ environment, source: dir, args: ['--port=0'] })).rejects.toThrow(
      'The engine did not start (exit code 1): RuntimeError: CUDA out of memory',
    );
    await rm(join(dir, 'broken'));
    const mute = serveEngine({ environment, source: dir, args: ['--port=0', '--mute'], silenceMs: 300 });
    await expect(mute).rejects.toThrow('it said nothing for 0 s');
    const stop = new AbortController(),
      start = serveEngine({ environment, source: dir, args: ['--port=0', '--mute'], signal: stop.signal });
    stop.abort();
    await expect(start).rejects.toMatchObject({ error: { kind: 'cancelled' } });
    expect(execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })).not.toContain(join(dir, 'engine.cjs'));
  });
});

/** As soon as it is so; the test's own deadline ends a wait that never ends. */
async function until(so: () => boolean): Promise<void> {
  while (!so()) await new Promise((r) => setTimeout(r, 5));
}
