import { once } from 'node:events';
import { connect } from 'node:net';
import { PassThrough, type Duplex } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import type { Desktop, DesktopProvider } from '../../../runtime/cluster/types.js';
import { StudioError, id, toRunError, type DesktopId } from '../../../runtime/domain/index.js';
import { serveOsworld, type Served, type ServeOptions } from '../../../runtime/gateway/osworld/serve.js';
import { FakeDesktop } from '../../helpers/tasks/fakeDesktop.js';

const lost = (): StudioError => new StudioError('desktop.lost', 'It is gone.', 'It is replaced.');

class Numbered extends FakeDesktop {
  override readonly id: DesktopId;
  constructor(n: number) {
    super();
    this.id = id<DesktopId>(`fake-${n}`);
  }
  lose(): void {
    for (const l of [...this.listeners]) l({ type: 'lost', error: toRunError(lost()) });
  }
}
/** Its port 9222 says back what it is told. */
class Open extends Numbered {
  readonly asked: number[] = [];
  readonly streams: Duplex[] = [];
  connect(port: number): Promise<Duplex> {
    this.asked.push(port);
    if (port !== 9222) return Promise.reject(lost());
    const s = new PassThrough();
    this.streams.push(s);
    return Promise.resolve(s);
  }
}

/** Desktops of memory; a start fails with the next of `faults`. */
class Provider implements DesktopProvider {
  readonly name = 'local' as const;
  readonly made: Numbered[] = [];
  readonly destroyed: Desktop[] = [];
  faults: string[] = [];
  starts = 0;
  /** What a reset gives; default: the same. */
  renewed: (d: Desktop) => Promise<Desktop> = (d) => Promise.resolve(d);
  /** Holds starts back. */
  gate: Promise<void> = Promise.resolve();
  readonly #open: boolean;
  constructor(open = false) {
    this.#open = open;
  }
  status(): never {
    throw new Error('not used');
  }
  another(): Numbered {
    const d = new (this.#open ? Open : Numbered)(this.made.length);
    this.made.push(d);
    return d;
  }
  async create(): Promise<Desktop> {
    this.starts++;
    await this.gate;
    const fault = this.faults.shift();
    if (fault !== undefined) throw new StudioError('desktop.start', fault, 'Look.');
    return this.another();
  }
  reset(d: Desktop): Promise<Desktop> {
    return this.renewed(d);
  }
  destroy(d: Desktop): Promise<void> {
    this.destroyed.push(d);
    return Promise.resolve();
  }
  reap(): Promise<number> {
    return Promise.resolve(0);
  }
  dispose(): Promise<void> {
    return Promise.resolve();
  }
}

let served: Served | undefined;
afterEach(async () => {
  await served?.close();
  served = undefined;
});
interface Answer {
  readonly status: number;
  readonly episode: string | null;
  readonly body: Record<string, unknown>;
}
async function serving(
  provider: Provider,
  o: Partial<ServeOptions> = {},
): Promise<{ lines: string[]; ask: (path: string) => Promise<Answer>; reset: () => Promise<Answer> }> {
  const lines: string[] = [];
  served = await serveOsworld({
    provider,
    spec: { screen: { width: 640, height: 401 }, memoryMb: 64, pids: 10 },
    count: 1,
    port: 0,
    picture: () => Promise.resolve(Buffer.from('picture')),
    onLine: (l) => lines.push(l),
    ...o,
  });
  const url = `http://127.0.0.1:${served.desktops[0]!.port}`,
    asked = async (method: string, path: string): Promise<Answer> => {
      const r = await fetch(url + path, { method, ...(method === 'POST' ? { body: '{}' } : {}) });
      return {
        status: r.status,
        episode: r.headers.get('x-dart-episode'),
        body: (await r.json()) as Record<string, unknown>,
      };
    };
  return { lines, ask: (path) => asked('GET', path), reset: () => asked('POST', '/dart/reset') };
}

describe('a start of desktops that is stopped', () => {
  it('leaves none, not those that are there already either', async () => {
    const provider = new Provider(),
      stop = new AbortController(),
      create = provider.create.bind(provider);
    let go = (): void => undefined,
      disposed = 0;
    provider.create = () => {
      if (provider.made.length === 2) provider.gate = new Promise((r) => (go = r));
      return create();
    };
    provider.dispose = () => Promise.resolve(void disposed++);
    const starting = expect(serving(provider, { count: 4, signal: stop.signal })).rejects.toMatchObject({
      kind: 'cancelled',
    });
    await expect.poll(() => provider.starts).toBe(3);
    stop.abort();
    go();
    await starting;
    // Of those that had started its provider is told last of all.
    expect([provider.starts, provider.destroyed.map((d) => d.id), disposed]).toEqual([3, ['fake-2'], 1]);
  });
});

describe('a desktop behind its port', () => {
  it('is tried for again by the next request when it could not be replaced', async () => {
    const provider = new Provider(),
      s = await serving(provider, { pauseMs: () => 0 });
    provider.faults = ['no memory', 'no memory still'];
    provider.made[0]!.lose();
    await expect.poll(() => s.lines.length).toBe(2);
    expect(s.lines[1]).toMatch(/^No desktop could be started in its place: no memory/);
    const refused = await s.ask('/dart/health');
    expect([refused.status, refused.body['message']]).toEqual([503, expect.stringContaining('no memory')]);
    await expect.poll(async () => (await s.ask('/dart/health')).status).toBe(200);
    expect([provider.starts, (await s.ask('/dart/health')).body['desktop']]).toEqual([4, 'fake-1']);
  });

  it('is not tried for by requests before a pause, but by a reset at once', async () => {
    const pauses: number[] = [],
      provider = new Provider(),
      s = await serving(provider, { pauseMs: (n) => (pauses.push(n), 60_000) });
    provider.faults = ['one', 'two'];
    provider.made[0]!.lose();
    await expect.poll(() => s.lines.length).toBe(2);
    for (let i = 0; i < 3; i++) expect((await s.ask('/dart/health')).status).toBe(503);
    expect(provider.starts).toBe(2);
    const failed = await s.reset();
    expect([failed.status, failed.body['message'], pauses]).toEqual([503, expect.stringContaining('two'), [1, 2]]);
    expect(await s.reset()).toMatchObject({ status: 200, body: { status: 'success' } });
    expect((await s.ask('/dart/health')).body['desktop']).toBe('fake-1');
  });

  it('is watched also where a reset gave another one', async () => {
    const provider = new Provider(),
      s = await serving(provider);
    provider.renewed = () => Promise.resolve(provider.another());
    expect((await s.reset()).status).toBe(200);
    expect(provider.made[0]!.listeners.size).toBe(0);
    provider.made[1]!.lose();
    await expect.poll(async () => (await s.ask('/dart/health')).body['desktop']).toBe('fake-2');
    expect(s.lines).toEqual(['fake-1 was lost (It is gone.) and is being replaced.']);
  });

  it('is watched once, however often it is reset', async () => {
    const provider = new Provider(),
      s = await serving(provider);
    for (let i = 0; i < 3; i++) await s.reset();
    expect(provider.made[0]!.listeners.size).toBe(1);
    expect((await s.ask('/dart/health')).episode).toBe('4');
  });

  it('is replaced by a reset that fails, once for all who ask meanwhile', async () => {
    const provider = new Provider(),
      s = await serving(provider);
    provider.renewed = () => Promise.reject(new Error('it does not come back'));
    const answers = await Promise.all([s.reset(), s.reset(), s.reset()]);
    expect(answers.map((a) => a.status)).toEqual([200, 200, 200]);
    expect(provider.destroyed).toEqual(provider.made.slice(0, -1));
  });

  it('that was lost during its reset stays away when the other one is there', async () => {
    const provider = new Provider(),
      s = await serving(provider);
    provider.renewed = async (d) => {
      provider.made[0]!.lose();
      await expect.poll(() => provider.made.length).toBe(2);
      return d;
    };
    expect((await s.reset()).status).toBe(200);
    expect((await s.ask('/dart/health')).body['desktop']).toBe('fake-1');
    expect(provider.destroyed).toEqual([provider.made[0]]);
  });

  it('that is being started at the end does not stay', async () => {
    const provider = new Provider(),
      s = await serving(provider);
    let start: () => void = () => {};
    provider.gate = new Promise((done) => {
      start = done;
    });
    provider.made[0]!.lose();
    await expect.poll(() => provider.starts).toBe(2);
    const closed = served!.close();
    served = undefined;
    start();
    await closed;
    expect(provider.destroyed).toEqual(provider.made);
    expect(s.lines.length).toBe(1);
  });
});

describe('ports of a desktop’s programs', () => {
  it('each desktop has its own for Chromium and VLC', async () => {
    const provider = new Provider(true);
    await serving(provider, { count: 2 });
    const ports = served!.desktops.flatMap((d) => [d.port, d.chromium, d.vlc]);
    expect([new Set(ports).size, ports.every((p) => p > 0)]).toEqual([6, true]);
    const c = connect(served!.desktops[1]!.chromium, '127.0.0.1');
    c.write('hello');
    const [said] = (await once(c, 'data')) as [Buffer];
    expect(String(said)).toBe('hello');
    expect(provider.made.map((d) => (d as Open).asked)).toEqual([[], [9222]]);
    c.destroy();
  });

  it('are closed with an episode and at the end', async () => {
    const provider = new Provider(true),
      s = await serving(provider),
      { chromium } = served!.desktops[0]!,
      c = connect(chromium, '127.0.0.1');
    c.on('error', () => c.destroy());
    c.write('hello');
    await once(c, 'data');
    await s.reset();
    c.resume();
    await expect.poll(() => c.closed).toBe(true);
    expect((provider.made[0] as Open).streams[0]!.destroyed).toBe(true);
    await served!.close();
    served = undefined;
    const [e] = (await once(connect(chromium, '127.0.0.1'), 'error')) as [NodeJS.ErrnoException];
    expect(e.code).toBe('ECONNREFUSED');
  });

  it('are none where no way leads in, nor where a token is asked for', async () => {
    await serving(new Provider());
    expect(served!.desktops[0]).toMatchObject({ chromium: 0, vlc: 0 });
    await served!.close();
    await serving(new Provider(true), { token: 'secret' });
    expect(served!.desktops[0]).toMatchObject({ chromium: 0, vlc: 0 });
  });
});
