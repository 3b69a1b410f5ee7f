import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { deflateSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import type { OsworldOptions } from '../../../runtime/cluster/providers/osworld/access.js';
import { OsworldProvider } from '../../../runtime/cluster/providers/osworld/provider.js';
import { createPool } from '../../../runtime/cluster/pool.js';
import type { StudioError } from '../../../runtime/domain/index.js';
import { pngChunk, pngFile } from '../../../runtime/files/pngWriter.js';
import { parseRunFile } from '../../../runtime/config/index.js';
import { encodePng } from '../../../runtime/data/store/png.js';
import type { Desktop, DesktopEvent, DesktopSpec } from '../../../runtime/cluster/types.js';

const spec: DesktopSpec = { screen: { width: 8, height: 4 }, memoryMb: 512, pids: 64 };
/** A screen of one colour; scanlines begin with their filter. */
const picture = (grey: number, { width, height } = spec.screen): Promise<Buffer> => {
  const row = Buffer.concat([Buffer.alloc(1), Buffer.alloc(width * 3, grey)]);
  return encodePng(Buffer.concat(Array.from({ length: height }, () => row)), width, height);
};

type Route = (res: ServerResponse, body: string) => void | Promise<void>;
/** A server whose routes the test changes while it runs. */
class Fake {
  readonly routes = new Map<string, Route>();
  readonly seen: string[] = [];
  readonly #server: Server;
  constructor() {
    this.#server = createServer((req, res) => {
      const parts: Buffer[] = [];
      req.on('data', (d: Buffer) => parts.push(d));
      req.on('end', () => {
        const route = this.routes.get(`${req.method} ${req.url}`);
        this.seen.push(`${req.method} ${req.url}`);
        if (route) void route(res, Buffer.concat(parts).toString('utf8'));
        else res.writeHead(404).end('{}');
      });
    });
  }
  async listen(): Promise<string> {
    await new Promise<void>((r) => {
      this.#server.listen(0, '127.0.0.1', r);
    });
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }
  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((r) => {
      this.#server.close(r);
    });
  }
  json(route: string, value: unknown, status = 200): void {
    this.routes.set(route, (res) => {
      res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    });
  }
  screen(png: Buffer): void {
    this.routes.set('GET /screenshot', (res) => {
      res.writeHead(200, { 'content-type': 'image/png' }).end(png);
    });
  }
  /** What it is asked to run from now on, each without the lines that begin every program. */
  programs(): string[] {
    const ran: string[] = [];
    this.routes.set('POST /execute', (res, body) => {
      ran.push((JSON.parse(body) as { command: string[] }).command[2]!.split('PAUSE = 0; ')[1]!);
      setImmediate(() => res.writeHead(200).end('{"status":"success","returncode":0}'));
    });
    return ran;
  }
}

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const o of open.splice(0)) await o.close();
});
const options = (o: Partial<OsworldOptions>): OsworldOptions => ({ ...parseRunFile({}).desktops.osworld, ...o });

async function served(
  o: Partial<OsworldOptions> = {},
): Promise<{ fake: Fake; url: string; provider: OsworldProvider }> {
  const fake = new Fake(),
    url = await fake.listen();
  fake.json('GET /dart/health', { status: 'ok' });
  fake.json('POST /dart/reset', { status: 'success' });
  fake.screen(await picture(10));
  const provider = new OsworldProvider(options({ servers: [url], ...o }));
  open.push({ close: () => provider.dispose() }, fake);
  return { fake, url, provider };
}
const lostOf = (d: Desktop): DesktopEvent[] => {
  const events: DesktopEvent[] = [];
  d.onEvent((e) => events.push(e));
  return events;
};

describe('a server of OSWorld', () => {
  it('is used by one desktop at a time, and is reset before each', async () => {
    const { fake, provider } = await served();
    expect(await provider.status()).toMatchObject({ ok: true, capacity: 1 });
    const d = await provider.create(spec);
    await expect(provider.create(spec)).rejects.toMatchObject({ kind: 'desktop.unavailable' });
    expect(await provider.reset(d)).toBe(d);
    await provider.destroy(d);
    await provider.create(spec);
    expect(fake.seen.filter((s) => s === 'POST /dart/reset')).toHaveLength(3);
  });
  it('has one desktop for everybody: no second run takes it, and what somebody else did to it is noticed', async () => {
    const { fake, url, provider } = await served();
    let episode = '1';
    const answer =
      (status: number, body: string | Buffer): Route =>
      (res) =>
        void res.writeHead(status, { 'x-dart-episode': episode }).end(body);
    fake.routes.set('POST /dart/reset', answer(200, '{}'));
    fake.routes.set('GET /screenshot', answer(200, await picture(10)));
    const d = await provider.create(spec),
      other = new OsworldProvider(options({ servers: [url] }));
    open.push({ close: () => other.dispose() });
    await expect(other.create(spec)).rejects.toThrow(/in use/);
    expect(await d.screenshot!()).toMatchObject({ width: 8 });
    // Its server has another one meanwhile: what was set up is gone, and that is no failure of the policy.
    episode = '2';
    await expect(d.screenshot!()).rejects.toMatchObject({ kind: 'desktop.lost' });
    await provider.destroy(d);
    expect(await (await other.create(spec)).screenshot!()).toMatchObject({ width: 8 });
  });
  it('that is away keeps nobody from asking the others', async () => {
    const { url } = await served(),
      p = new OsworldProvider(options({ servers: ['http://127.0.0.1:9', url] }));
    open.push({ close: () => p.dispose() });
    await expect(p.create(spec)).rejects.toMatchObject({ kind: 'desktop.lost' });
    expect(await p.create(spec)).toMatchObject({ provider: 'osworld' });
  });
  it('that keeps its state has another first screen each time, and that is no fault', async () => {
    const { fake, provider } = await served({ keepState: true }),
      pool = createPool({ provider, spec, size: 1 }),
      { signal } = new AbortController();
    fake.routes.delete('GET /dart/health');
    try {
      for (let grey = 0; grey < 4; grey++) {
        fake.screen(await picture(grey * 40));
        (await pool.lease({ signal })).release();
      }
      expect(pool.status().desktops[0]).toMatchObject({ replaced: 0 });
    } finally {
      await pool.close();
    }
  });
  it('that cannot reset is refused, unless the run file accepts what a rollout leaves', async () => {
    const { fake, provider } = await served();
    fake.routes.delete('GET /dart/health');
    expect(await provider.status()).toMatchObject({ ok: false, problem: { kind: 'desktop.unavailable' } });
    expect((await provider.status()).problem?.remedy).toContain('keepState');
    await expect(provider.create(spec)).rejects.toThrow(/cannot bring its desktop back/);
    const kept = await served({ keepState: true });
    kept.fake.routes.delete('GET /dart/health');
    const d = await kept.provider.create(spec);
    await kept.provider.reset(d);
    expect(kept.fake.seen).not.toContain('POST /dart/reset');
  });
  it('with another screen than the run file says is refused, with what to write there', async () => {
    const { fake, provider } = await served();
    fake.screen(await picture(10, { width: 16, height: 9 }));
    await expect(provider.create(spec)).rejects.toMatchObject({
      kind: 'config.invalid',
      error: { remedy: 'Set desktops.screen to { "width": 16, "height": 9 }.' },
    });
    // It is free again.
    fake.screen(await picture(10));
    await provider.create(spec);
  });
  it('is not followed to another address, and its token goes nowhere else', async () => {
    process.env['DART_STUDIO_TEST_KEY'] = 'secret';
    const other = new Fake(),
      elsewhere = await other.listen(),
      { fake, provider } = await served({ tokenEnv: 'DART_STUDIO_TEST_KEY' });
    open.push(other);
    fake.routes.set('GET /screenshot', (res) => {
      res.writeHead(302, { location: `${elsewhere}/screenshot` }).end();
    });
    await expect(provider.create(spec)).rejects.toMatchObject({ kind: 'desktop.unavailable' });
    expect(other.seen).toEqual([]);
    expect(() => new OsworldProvider(options({ servers: ['http://127.0.0.1:1'], tokenEnv: 'HOME' }))).toThrow(
      /not one of those/,
    );
  });
});

describe('its desktop', () => {
  it('reads a screen again that came as a half or an error, and is lost where that goes on', async () => {
    const { fake, provider } = await served(),
      d = await provider.create(spec),
      png = await picture(10),
      answers: Route[] = [
        (res) => void res.writeHead(500).end('no'),
        (res) => void res.writeHead(200).end(png.subarray(0, png.length >> 1)),
      ];
    fake.routes.set('GET /screenshot', (res, body) =>
      (answers.shift() ?? ((r) => void r.writeHead(200).end(png)))(res, body),
    );
    expect(await d.screenshot!()).toMatchObject({ png });
    const events = lostOf(d);
    fake.routes.set('GET /screenshot', (res) => void res.writeHead(200).end(png.subarray(0, 60)));
    await expect(d.observe()).rejects.toMatchObject({ kind: 'desktop.lost' });
    await expect(d.settle()).rejects.toMatchObject({ kind: 'desktop.lost' });
    expect(events).toHaveLength(1);
  });
  it('decodes its screen where pixels are wanted, and where it is not what models are shown', async () => {
    const { fake, provider } = await served(),
      d = await provider.create(spec);
    const frame = await d.observe();
    expect([frame.width, frame.height, frame.data.subarray(0, 3)]).toEqual([8, 4, Buffer.from([10, 10, 10])]);
    const { encode } = await import('fast-png');
    fake.screen(Buffer.from(encode({ width: 8, height: 4, channels: 4, data: new Uint8Array(8 * 4 * 4).fill(77) })));
    const shot = await d.screenshot!();
    expect('data' in shot && shot.data[0]).toBe(77);
  });
  it('keeps the pixels of its screen and nothing else that a server packs into the file', async () => {
    const { fake, provider } = await served(),
      d = await provider.create(spec),
      png = await picture(10),
      padding = pngChunk('paDd', Buffer.alloc(100_000, 7)),
      iend = png.length - 12;
    fake.screen(Buffer.concat([png.subarray(0, iend), padding, png.subarray(iend)]));
    expect(await d.screenshot!()).toMatchObject({ png });
    fake.screen(Buffer.concat([png, Buffer.alloc(1000, 7), png.subarray(iend)]));
    expect(await d.screenshot!()).toMatchObject({ png });
  });
  it.each([
    ['does not inflate', Buffer.from('no pixels'), 'damaged'],
    ['is too small', deflateSync(Buffer.alloc(10)), 'too few pixels'],
    [
      'has padding behind its pixels',
      Buffer.concat([deflateSync(Buffer.alloc(25 * 4)), Buffer.alloc(1 << 20)]),
      'larger',
    ],
  ])('is lost when its screen %s', async (_what, data, why) => {
    const { fake, provider } = await served(),
      d = await provider.create(spec);
    fake.screen(pngFile({ ...spec.screen, data }));
    await expect(d.screenshot!()).rejects.toMatchObject({
      kind: 'desktop.lost',
      message: expect.stringContaining(why) as string,
    });
  });
  it('is lost when an action was sent and nobody knows whether it was done', async () => {
    const { fake, provider } = await served(),
      d = await provider.create(spec),
      events = lostOf(d);
    let tries = 0;
    fake.routes.set('POST /execute', (res) => {
      tries++;
      res.destroy();
    });
    await expect(d.perform({ type: 'click', at: { x: 1, y: 1 } })).rejects.toMatchObject({ kind: 'desktop.lost' });
    expect([tries, events.length]).toEqual([1, 1]);
  });
  it('is lost when its Python fails, and refuses what ends an episode', async () => {
    const { fake, provider } = await served(),
      d = await provider.create(spec);
    await expect(d.perform({ type: 'finished' })).rejects.toMatchObject({ kind: 'policy.invalid' });
    fake.json('POST /execute', { status: 'success', returncode: 0, output: '', error: '' });
    await d.perform({ type: 'hotkey', keys: ['ctrl', 's'] });
    fake.json('POST /execute', {
      status: 'success',
      returncode: 1,
      output: '',
      error: 'Xlib.error.DisplayConnectionError',
    });
    await expect(d.perform({ type: 'hotkey', keys: ['a'] })).rejects.toThrow(/DisplayConnectionError/);
  });
  it('does nothing any more once it is over: what was asked is cut off', async () => {
    const { fake, provider } = await served(),
      d = await provider.create(spec);
    let cut = false;
    fake.routes.set('POST /execute', (res) => void res.on('close', () => (cut = true)));
    const acting = d.perform({ type: 'hotkey', keys: ['a'] }),
      ended = expect(acting).rejects.toMatchObject({ kind: 'desktop.lost' });
    await expect.poll(() => fake.seen.includes('POST /execute')).toBe(true);
    await provider.destroy(d);
    await ended;
    await expect.poll(() => cut).toBe(true);
  });
  it('performs one action after the other', async () => {
    const { fake, provider } = await served(),
      d = await provider.create(spec),
      order: string[] = [];
    fake.routes.set('POST /execute', (res, body) => {
      const word = /write\('(\w+)'\)/.exec((JSON.parse(body) as { command: string[] }).command[2]!)![1]!;
      order.push(`begin ${word}`);
      setImmediate(() => {
        order.push(`end ${word}`);
        res.writeHead(200).end('{"status":"success","returncode":0}');
      });
    });
    await Promise.all(['one', 'two', 'three'].map((text) => d.perform({ type: 'type', text })));
    expect(order).toEqual(['one', 'two', 'three'].flatMap((w) => [`begin ${w}`, `end ${w}`]));
  });
  it('what a person does while a program runs goes into the next one together, and past no action', async () => {
    const { fake, provider } = await served(),
      d = await provider.create(spec),
      ran = fake.programs();
    const button = (down: boolean): Promise<void> => d.input!([{ type: 'button', button: 'left', down, x: 3, y: 3 }]),
      press = button(true);
    await expect.poll(() => ran.length).toBe(1);
    await Promise.all([
      press,
      button(false),
      button(true),
      button(false),
      d.perform({ type: 'hotkey', keys: ['a'] }),
      d.input!([{ type: 'move', x: 5, y: 2 }]),
    ]);
    const [down, up] = ['Down', 'Up'].map((to) => `pyautogui.mouse${to}(x=3, y=3, button='left')`);
    expect(ran).toEqual([
      down,
      [up, down, up].join('\n'),
      expect.stringContaining("'a'"),
      'pyautogui.moveTo(x=5, y=2)',
    ]);
  });
  it('knows nothing of keys and buttons that a person held on it before it was reset', async () => {
    const { fake, provider } = await served(),
      d = await provider.create(spec),
      ran = fake.programs();
    await d.input!([
      { type: 'key', key: 'Control', down: true },
      { type: 'button', button: 'left', down: true, x: 1, y: 1 },
    ]);
    await provider.reset(d);
    ran.length = 0;
    await d.input!([{ type: 'text', text: 'a' }]);
    await d.input!([{ type: 'wheel', dx: 0, dy: 1, x: 2, y: 2 }]);
    await d.input!([{ type: 'button', button: 'left', down: true, x: 3, y: 3 }]);
    expect(ran).toEqual([
      "pyautogui.write('a')",
      'pyautogui.scroll(-1, x=2, y=2)',
      "pyautogui.mouseDown(x=3, y=3, button='left')",
    ]);
  });
  it('settles when its screen no longer changes, and says so when it never does', async () => {
    const { fake, provider } = await served(),
      d = await provider.create(spec),
      screens = await Promise.all([10, 20, 30].map((g) => picture(g)));
    let looks = 0;
    fake.routes.set('GET /screenshot', (res) => void res.writeHead(200).end(screens[Math.min(looks++, 2)]));
    expect(await d.settle({ maxMs: 20_000 })).toMatchObject({ settled: true, detector: 'hold' });
    const before = looks;
    // What settling saw last is the present screen.
    expect(await d.screenshot!()).toMatchObject({ png: screens[2] });
    expect(looks).toBe(before);
    await d.screenshot!();
    expect(looks).toBe(before + 1);
    fake.routes.set('GET /screenshot', (res) => void res.writeHead(200).end(screens[looks++ % 2]));
    expect(await d.settle({ maxMs: 300 })).toMatchObject({ settled: false });
  });
  it('asks a server that knows when it is at rest', async () => {
    const { fake, provider } = await served();
    fake.json('GET /dart/health', { status: 'ok', settles: true });
    const d = await provider.create(spec),
      asked: unknown[] = [];
    fake.routes.set('POST /dart/settle', (res, body) => {
      asked.push(JSON.parse(body));
      res.writeHead(200).end('{"settled":true,"ms":3,"detector":"exact"}');
    });
    const before = fake.seen.length;
    expect(await d.settle({ horizonMs: 20, maxMs: 900, terminalHoldMs: 150 })).toMatchObject({
      settled: true,
      detector: 'exact',
    });
    expect([asked, fake.seen.slice(before)]).toEqual([
      [{ horizonMs: 20, maxMs: 900, terminalHoldMs: 150 }],
      ['POST /dart/settle'],
    ]);
    fake.json('POST /dart/settle', { status: 'error', message: 'no X' }, 500);
    await expect(d.settle()).rejects.toThrow(/cannot say when it is at rest: no X/);
  });
  it('says that a file is missing, refuses one that is too long, and what is no answer', async () => {
    const { fake, provider } = await served(),
      d = await provider.create(spec);
    const printed = (text: string, returncode = 0): void =>
        fake.json('POST /execute', { output: `${Buffer.from(text).toString('base64')}\n\n`, returncode }),
      code = async (): Promise<unknown> =>
        d.readFile('/x').catch((e: StudioError) => [e.kind, e.error.details?.['code']]);
    printed('', 1);
    expect(await code()).toEqual(['desktop.exec', 'ENOENT']);
    // Its server waits for ever at a pipe: it is never asked for one.
    for (const [kind, as] of [
      ['4096 directory', 'EISDIR'],
      ['0 fifo', 'ENOTREG'],
      ['200000000 regular file', 'EFBIG'],
    ] as const) {
      printed(kind);
      expect(await code()).toEqual(['desktop.exec', as]);
    }
    expect(fake.seen).not.toContain('POST /file');
    printed('5 regular file');
    fake.json('POST /file', { error: 'File not found' }, 404);
    expect(await code()).toEqual(['desktop.exec', 'ENOENT']);
    fake.routes.set('POST /file', (res) => void res.writeHead(500).end('PermissionError'));
    expect(await code()).toEqual(['desktop.exec', 'EACCES']);
    fake.json('POST /execute', { output: '', returncode: 125 });
    await expect(d.exec(['true'])).rejects.toMatchObject({ error: { details: { code: 'ENOSPC' } } });
    printed('', 127);
    await expect(d.spawn(['none'])).rejects.toMatchObject({ error: { details: { code: 'ENOENT' } } });
    fake.json('POST /execute', { status: 'error', message: 'no bash' }, 500);
    await expect(d.exec(['true'])).rejects.toThrow(/no bash/);
    fake.json('POST /execute', { status: 'success', output: 'something', returncode: 0 });
    await expect(d.exec(['true'])).rejects.toMatchObject({ kind: 'desktop.exec' });
    fake.routes.set('POST /execute', (res) => {
      res.writeHead(200);
      const more = (): void => {
        if (!res.destroyed) res.write(Buffer.alloc(1 << 20, 97), more);
      };
      more();
    });
    await expect(d.exec(['true'])).rejects.toMatchObject({ kind: 'desktop.lost' });
  });
  it('gives up a command that is cancelled, and goes on', async () => {
    const { fake, provider } = await served(),
      d = await provider.create(spec),
      stop = new AbortController();
    fake.routes.set('POST /execute', () => stop.abort());
    await expect(d.exec(['sleep', '9'], { signal: stop.signal })).rejects.toMatchObject({ kind: 'cancelled' });
    expect(await d.screenshot!()).toMatchObject({ width: 8 });
  });
});
