import { Agent, request } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import type { DesktopInput } from '../../../runtime/cluster/types.js';
import { StudioError, type Frame } from '../../../runtime/domain/index.js';
import { listen, type Face } from '../../../runtime/gateway/http.js';
import { osworldFace } from '../../../runtime/gateway/osworld/face.js';
import type { AssetStore } from '../../../runtime/tasks/assets.js';
import { Strangers } from '../../helpers/machine/strangers.js';
import { FakeDesktop, type FakeExec } from '../../helpers/tasks/fakeDesktop.js';

/** Less than the 30 s after which Node.js, left alone, looks for late headers. */
const GONE_MS = 29_000;

class Typed extends FakeDesktop {
  readonly events: DesktopInput[] = [];
  input(events: readonly DesktopInput[]): Promise<void> {
    this.events.push(...events);
    return Promise.resolve();
  }
  override observe(): Promise<Frame> {
    return Promise.resolve({ width: 2, height: 1, data: Buffer.alloc(8) } as unknown as Frame);
  }
}

let open: Face[] = [];
afterEach(async () => {
  await Promise.all(open.map((f) => f.close()));
  open = [];
});

async function served(
  o: { answer?: FakeExec; token?: string; host?: string; connections?: number; assets?: AssetStore } = {},
): Promise<{
  desktop: Typed;
  url: string;
  port: number;
  json: (path: string, body: unknown) => Promise<{ status: number; body: Record<string, unknown> }>;
}> {
  const desktop = new Typed(o.answer, { '/home/user/a.txt': 'hello' }),
    face = osworldFace(desktop, () => Promise.resolve(Buffer.from('picture')), o.assets),
    { token, host, connections } = o,
    f = await listen({ port: 0, token, host, connections, handle: (r) => face.handle(r) });
  open.push(f);
  const url = `http://127.0.0.1:${f.port}`;
  return {
    desktop,
    url,
    port: f.port,
    json: async (path, body) => {
      const r = await fetch(url + path, { method: 'POST', body: JSON.stringify(body) });
      return { status: r.status, body: (await r.json()) as Record<string, unknown> };
    },
  };
}
/** A picture of the screen, asked for with these headers, which `fetch` would not send. */
const headed = (port: number, headers: Record<string, string>): Promise<{ status: number; policy: unknown }> =>
  new Promise((resolve, reject) => {
    request({ port, host: '127.0.0.1', path: '/screenshot', headers, agent: false }, (r) => {
      r.resume();
      resolve({ status: r.statusCode!, policy: r.headers['cross-origin-resource-policy'] });
    })
      .on('error', reject)
      .end();
  });
const python = (code: string): { command: string[]; shell: boolean } => ({
  command: ['python', '-c', `import pyautogui; import time; pyautogui.FAILSAFE = False; ${code}`],
  shell: false,
});

describe('OSWorld’s API on a desktop', () => {
  it('answers what its clients ask first', async () => {
    const s = await served();
    const shot = await fetch(`${s.url}/screenshot`);
    expect([shot.status, shot.headers.get('content-type'), await shot.text()]).toEqual([200, 'image/png', 'picture']);
    expect(await (await fetch(`${s.url}/screen_size`, { method: 'POST' })).json()).toEqual({ width: 640, height: 401 });
    expect(await (await fetch(`${s.url}/platform`)).text()).toBe('Linux');
    expect(await (await fetch(`${s.url}/terminal`)).json()).toEqual({ output: null, status: 'success' });
  });

  it('shows nothing to pages of other sites, whatever they ask it as', async () => {
    const s = await served(),
      asked = async (site?: string): Promise<number> =>
        (await headed(s.port, site === undefined ? {} : { 'sec-fetch-site': site })).status;
    expect(await Promise.all(['cross-site', 'same-site'].map(asked))).toEqual([403, 403]);
    expect(await Promise.all(['none', 'same-origin', undefined].map(asked))).toEqual([200, 200, 200]);
    for (const site of ['none', 'cross-site'])
      expect((await headed(s.port, { 'sec-fetch-site': site })).policy).toBe('same-origin');
  });

  it('takes 4 MiB of JSON, and no lists without end; forms may be longer', async () => {
    const s = await served();
    const posted = async (body: string): Promise<[number, unknown]> => {
      const r = await fetch(`${s.url}/execute`, { method: 'POST', body });
      return [r.status, ((await r.json()) as { message: unknown }).message];
    };
    expect(await posted(JSON.stringify({ command: 'x'.repeat(5 << 20) }))).toEqual([
      400,
      'The body is longer than 4 MiB.',
    ]);
    expect(await posted('['.repeat(1 << 20))).toEqual([
      400,
      'The body holds more than 64 lists and objects within one another.',
    ]);
    const form = new FormData();
    form.set('file_path', '/home/user/large');
    form.set('file_data', new Blob([new Uint8Array(5 << 20)]), 'large');
    expect((await fetch(`${s.url}/setup/upload`, { method: 'POST', body: form })).status).toBe(200);
  });

  it('performs pyautogui without starting a Python', async () => {
    const s = await served();
    expect(await s.json('/execute', python('pyautogui.click(5, 6)'))).toEqual({
      status: 200,
      body: { status: 'success', output: '', error: '', returncode: 0 },
    });
    expect(s.desktop.events).toEqual([
      { type: 'move', x: 5, y: 6 },
      { type: 'button', button: 'left', down: true, x: 5, y: 6 },
      { type: 'button', button: 'left', down: false, x: 5, y: 6 },
    ]);
    expect(s.desktop.log).toEqual([]);
  });
  it('asks where the pointer is once, and again after a program may have moved it', async () => {
    const s = await served({
      answer: (c) => (c.includes('xdotool') ? { stdout: 'X=7\nY=8\nSCREEN=0\nWINDOW=1\n' } : undefined),
    });
    const asked = (): number => s.desktop.log.filter((l) => l.includes('getmouselocation')).length;
    await s.json('/execute', python('pyautogui.click()'));
    await s.json('/execute', python('pyautogui.click()'));
    expect([s.desktop.events[0], asked()]).toEqual([{ type: 'move', x: 7, y: 8 }, 1]);
    await s.json('/execute', { command: 'xdotool mousemove 1 1', shell: true });
    await s.json('/execute', python('pyautogui.click()'));
    expect(asked()).toBe(2);
  });
  it('holds the modifiers that a request leaves down, for those after it', async () => {
    const s = await served(),
      key = (name: string, down: boolean): DesktopInput => ({ type: 'key', key: name, down }),
      sent = async (code: string): Promise<DesktopInput[]> => {
        s.desktop.events.length = 0;
        await s.json('/execute', python(code));
        return s.desktop.events;
      };
    expect(await sent("pyautogui.keyDown('shift')")).toEqual([key('Shift', true)]);
    expect(await sent("pyautogui.press('a')")).toEqual([key('A', true), key('A', false)]);
    expect(s.desktop.log).toEqual([]);
    // A Python runs it, and what it does to modifiers is told.
    expect(await sent("pyautogui.scroll(5, 1, 1); pyautogui.keyUp('shift')")).toEqual([key('Shift', false)]);
    expect(await sent("pyautogui.press('a')")).toEqual([key('a', true), key('a', false)]);
    expect(await sent("pyautogui.keyDown('ctrl'); pyautogui.scroll(5, 1, 1)")).toEqual([key('Control', true)]);
    expect(await sent("pyautogui.keyUp('ctrl')")).toEqual([key('Control', false)]);
    expect(s.desktop.log.filter((l) => l.startsWith('exec'))).toHaveLength(2);
  });
  it('knows what is down when a client has gone away in the middle', async () => {
    const s = await served(),
      gone = new AbortController(),
      body = JSON.stringify(python("pyautogui.keyDown('shift'); time.sleep(60); pyautogui.keyUp('shift')")),
      waiting = fetch(`${s.url}/execute`, { method: 'POST', body, signal: gone.signal });
    await expect.poll(() => s.desktop.events.length).toBe(1);
    gone.abort();
    await expect(waiting).rejects.toThrow();
    await s.json('/execute', python("pyautogui.press('a')"));
    expect(s.desktop.events.slice(1).map((e) => e.type === 'key' && e.key)).toEqual(['A', 'A']);
  });
  it('runs everything else as it is; a failing command is an answer, a missing program an error', async () => {
    const s = await served({
      answer: (c) => (c[0] === 'nothing' ? 'not found' : { code: 3, stdout: 'out', stderr: 'err' }),
    });
    expect((await s.json('/execute', { command: ['ls', '~/x'] })).body).toEqual({
      status: 'success',
      output: 'out',
      error: 'err',
      returncode: 3,
    });
    expect(s.desktop.log.at(-1)).toBe('exec ls /home/user/x');
    expect((await s.json('/setup/execute', { command: 'nothing' })).status).toBe(500);
    await s.json('/execute', python('print(pyautogui.position())'));
    expect(s.desktop.log.at(-1)).toContain('print(pyautogui.position())');
    expect(s.desktop.events).toEqual([]);
  });
  it('waits for what a verified command should bring about, and says when it does not come', async () => {
    let looks = 0;
    const s = await served({
      answer: (c) =>
        c[0] === 'wmctrl' && ++looks > 2 ? { stdout: '0x1  0 0 0 10 10 a.A  host Fruit list\n' } : undefined,
    });
    const verified = (title: string, seconds: number): Promise<{ status: number; body: Record<string, unknown> }> =>
      s.json('/execute_with_verification', {
        command: 'true',
        verification: { window_exists: title },
        max_wait_time: seconds,
        check_interval: 0.05,
      });
    expect((await verified('fruit', 20)).body['verification']).toBe('passed');
    expect(await verified('Never', 0)).toMatchObject({ status: 500, body: { status: 'verification_failed' } });
  });

  it('takes and gives files', async () => {
    const s = await served(),
      form = new FormData();
    form.set('file_path', '~/b.bin');
    form.set('file_data', new Blob([Buffer.from([0, 255, 13, 10, 45, 45])]));
    const r = await fetch(`${s.url}/setup/upload`, { method: 'POST', body: form });
    expect([r.status, await r.text()]).toEqual([200, 'File Uploaded: 6 bytes']);
    expect(s.desktop.files.get('/home/user/b.bin')).toEqual(Buffer.from([0, 255, 13, 10, 45, 45]));
    const got = (path: string): Promise<Response> =>
      fetch(`${s.url}/file`, { method: 'POST', body: new URLSearchParams({ file_path: path }) });
    expect(await (await got('/home/user/a.txt')).text()).toBe('hello');
    const missing = await got('/home/user/none');
    expect([missing.status, await missing.json()]).toEqual([404, { error: 'File not found' }]);
  });

  it('downloads what is among the assets, and says why it cannot download anything else', async () => {
    const url = 'https://files.example/a/b.txt',
      body = JSON.stringify({ url, path: '~/Desktop/b.txt' }),
      assets: AssetStore = {
        dir: '/host/assets',
        has: (u) => u === url,
        read: (u) =>
          u === url
            ? Promise.resolve(Buffer.from('from the mirror'))
            : Promise.reject(new StudioError('task.unsupported', 'It is not there.', 'Put it there.')),
      };
    const fetched = async (o: { assets?: AssetStore }, asked: string): Promise<[Typed, number, string]> => {
      const s = await served(o),
        r = await fetch(`${s.url}/setup/download_file`, { method: 'POST', body: asked });
      return [s.desktop, r.status, await r.text()];
    };
    const [desktop, ...answer] = await fetched({ assets }, body);
    expect(answer).toEqual([200, 'File downloaded successfully']);
    expect(String(desktop.files.get('/home/user/Desktop/b.txt'))).toBe('from the mirror');
    const [, missing, why] = await fetched({ assets }, body.replace('b.txt', 'c.txt'));
    expect([missing, why]).toEqual([500, expect.stringContaining('no network, and it is not among the assets')]);
    expect(why).not.toContain('/host');
    const [, none, words] = await fetched({}, body);
    expect([none, words]).toEqual([500, expect.stringContaining('no assets were given to this server')]);
    expect((await fetched({}, '{"path": "/x"}'))[1]).toBe(400);
  });

  it('sets the wallpaper and gives it back, where the image has one', async () => {
    let uri = '';
    const s = await served({
        answer: ([program, verb, , , value]) => {
          if (program === 'test') return {};
          if (program !== 'gsettings') return undefined;
          if (verb === 'set') uri = value!;
          return verb === 'get' ? { stdout: `'${uri}'\n` } : {};
        },
      }),
      set = (path: string): Promise<Response> =>
        fetch(`${s.url}/setup/change_wallpaper`, { method: 'POST', body: JSON.stringify({ path }) });
    const before = await fetch(`${s.url}/wallpaper`, { method: 'POST' });
    expect(before.status).toBe(404);
    expect([(await set('~/a.txt')).status, uri]).toEqual([200, 'file:///home/user/a.txt']);
    const picture = await fetch(`${s.url}/wallpaper`, { method: 'POST' });
    expect([picture.status, picture.headers.get('content-type'), await picture.text()]).toEqual([
      200,
      'image/png',
      'hello',
    ]);
  });
  it('says that a desktop has no wallpaper, and that a picture for it is not there', async () => {
    const none = await served({ answer: ([program]) => (program === 'gsettings' ? 'not found' : undefined) });
    expect((await none.json('/setup/change_wallpaper', { path: '/home/user/a.txt' })).body['message']).toContain(
      'no settings of a wallpaper',
    );
    expect((await none.json('/wallpaper', {})).status).toBe(404);
    const missing = await served({ answer: ([program]) => (program === 'test' ? { code: 1 } : undefined) });
    expect((await missing.json('/setup/change_wallpaper', { path: '/x.png' })).status).toBe(404);
  });

  it.each([
    ['/execute', 'no json'],
    ['/execute', '{}'],
    ['/execute', '{"command": []}'],
    ['/setup/activate_window', '{"window_name": 5}'],
    ['/list_directory', '[]'],
    ['/file', 'x'],
  ])('answers 400 to %s with %s', async (path, body) => {
    const s = await served(),
      r = await fetch(s.url + path, { method: 'POST', body });
    expect([r.status, ((await r.json()) as { status: string }).status]).toEqual([400, 'error']);
  });
  it('answers 404 to a route it does not have, and 503 while the desktop is lost', async () => {
    const s = await served();
    expect((await fetch(`${s.url}/execute`)).status).toBe(404);
    s.desktop.lost = true;
    expect((await s.json('/execute', { command: 'ls' })).status).toBe(503);
  });
});

describe('who may use it', () => {
  /** fetch() sets Host and Origin itself. */
  const asked = (port: number, headers: Record<string, string>, agent: Agent | false = false): Promise<number> =>
    new Promise((resolve, reject) => {
      const r = request({ host: '127.0.0.1', port, path: '/platform', headers, agent }, (a) => {
        a.resume();
        resolve(a.statusCode!);
      });
      r.on('error', reject);
      r.end();
    });
  it('refuses web pages and names rebound to this machine', async () => {
    const { port } = await served();
    expect(await asked(port, {})).toBe(200);
    expect(await asked(port, { host: `localhost:${port}` })).toBe(200);
    expect(await asked(port, { origin: 'http://localhost' })).toBe(403);
    expect(await asked(port, { host: 'desktop.example' })).toBe(403);
  });
  it('asks for the token where there is one', async () => {
    const { port } = await served({ token: 'secret' });
    expect(await asked(port, {})).toBe(401);
    expect(await asked(port, { authorization: 'Bearer wrong' })).toBe(401);
    expect(await asked(port, { authorization: 'Bearer secret' })).toBe(200);
  });
  it(
    'who lacks the token keeps nobody out who has it, whether silent, slow or refused, and is gone after a few seconds',
    { timeout: GONE_MS },
    async () => {
      const { port } = await served({ token: 'secret', connections: 2 }),
        authorization = 'Bearer secret',
        patient = new Agent({ keepAlive: true });
      let others: Strangers | undefined;
      try {
        // Again where the machine stood still until they were gone.
        do {
          others?.end();
          others = await Strangers.at(port, 200);
          for (let i = 0; i < 4; i++) expect(await asked(port, {}, patient)).toBe(401);
          expect(await asked(port, { authorization })).toBe(200);
        } while (others.left === 0);
        await others.gone();
      } finally {
        others?.end();
        patient.destroy();
      }
    },
  );
  it('so many connections of those who may use it are the most, until one is closed', async () => {
    const { port } = await served({ connections: 1 }),
      first = new Agent({ keepAlive: true });
    expect(await asked(port, {}, first)).toBe(200);
    expect(await asked(port, {}, first)).toBe(200);
    expect(await asked(port, {})).toBe(503);
    first.destroy();
    await expect.poll(() => asked(port, {})).toBe(200);
  });
  it('does not listen beyond this machine without one', async () => {
    await expect(served({ host: '0.0.0.0' })).rejects.toMatchObject({ kind: 'config.invalid' });
  });
});
