import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serveOsworld, type Served } from '../../../runtime/gateway/osworld/serve.js';
import { pngOf } from '../../../runtime/data/store/png.js';
import { HD, localProvider, sandboxRecord, whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';

const why = await whyNoLocalDesktops();
if (why) console.warn(`skipped: ${why}`);

describe.skipIf(why)('real desktops behind OSWorld’s API', () => {
  let served: Served,
    lines: string[],
    url: string,
    said: (line: string) => void = () => {};
  beforeAll(async () => {
    lines = [];
    served = await serveOsworld({
      provider: localProvider(),
      spec: HD,
      count: 2,
      port: 0,
      picture: pngOf,
      onLine: (l) => {
        lines.push(l);
        said(l);
      },
    });
    url = `http://127.0.0.1:${served.desktops[0]!.port}`;
  }, 60_000);
  afterAll(async () => {
    await served?.close();
  });
  const post = async (path: string, body: unknown): Promise<Record<string, unknown>> => {
    const r = await fetch(url + path, { method: 'POST', body: JSON.stringify(body) }),
      text = await r.text();
    expect(r.status, text).toBe(200);
    return text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : { text };
  };
  const act = (code: string): Promise<Record<string, unknown>> =>
    post('/execute', { command: ['python', '-c', `import pyautogui; import time; ${code}`], shell: false });

  it('a document is uploaded, opened, edited by pyautogui, saved and read back', async () => {
    const form = new FormData();
    form.set('file_path', '/home/user/Documents/fruit.txt');
    form.set('file_data', new Blob(['apple\n']));
    await fetch(`${url}/setup/upload`, { method: 'POST', body: form });
    await post('/setup/open_file', { path: '/home/user/Documents/fruit.txt' });
    await act("pyautogui.hotkey('ctrl', 'End'); pyautogui.typewrite('Lemon, ünï\\n'); pyautogui.hotkey('ctrl', 's')");
    // The editor saves when it comes to it: asked as OSWorld asks, until it holds.
    await post('/execute_with_verification', {
      command: 'true',
      verification: { command_success: 'grep -q Lemon /home/user/Documents/fruit.txt' },
      max_wait_time: 20,
      check_interval: 0.1,
    });
    const r = await fetch(`${url}/file`, {
      method: 'POST',
      body: new URLSearchParams({ file_path: '/home/user/Documents/fruit.txt' }),
    });
    expect(await r.text()).toBe('apple\nLemon, ünï\n');
    const health = (await (await fetch(`${url}/dart/health`)).json()) as { performed: number };
    expect(health.performed).toBe(1);
  });
  it('clients see and write what is in the desktop, and nothing of the host', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'osworld-host-')),
      secret = join(dir, 'secret'),
      planted = join(dir, 'planted');
    try {
      await writeFile(secret, 'of the host');
      expect(await post('/execute', { command: ['cat', secret] })).toMatchObject({ output: '', returncode: 1 });
      const read = await fetch(`${url}/file`, { method: 'POST', body: new URLSearchParams({ file_path: secret }) });
      expect(read.status).toBe(404);
      const script = `mkdir -p ${dir} && echo x > ${planted} && hostname`;
      expect(await post('/execute', { command: script, shell: true })).toMatchObject({ output: 'desktop\n' });
      expect(await readdir(dir)).toEqual(['secret']);
    } finally {
      await rm(dir, { recursive: true });
    }
  });
  it('the pointer is where both ways of moving it left it', async () => {
    const pointer = async (): Promise<unknown> => (await fetch(`${url}/cursor_position`)).json();
    await act('pyautogui.moveTo(321, 123)');
    expect(await pointer()).toEqual([321, 123]);
    await post('/execute', { command: ['xdotool', 'mousemove', '55', '66'] });
    expect(await pointer()).toEqual([55, 66]);
  });
  it('a reset brings the first screen back, and a killed desktop is replaced behind its port', async () => {
    const picture = async (): Promise<Buffer> => Buffer.from(await (await fetch(`${url}/screenshot`)).arrayBuffer());
    await post('/dart/reset', {});
    const first = await picture();
    await post('/setup/launch', { command: ['yad', '--text=hello'] });
    await post('/execute_with_verification', {
      command: 'true',
      verification: { window_exists: 'YAD' },
      max_wait_time: 20,
      check_interval: 0.1,
    });
    expect((await picture()).equals(first)).toBe(false);
    await post('/dart/reset', {});
    expect((await picture()).equals(first)).toBe(true);
    expect(lines).toEqual([]);
    const lost = new Promise<string>((resolve) => {
      said = resolve;
    });
    for (const p of sandboxRecord(served.desktops[0]!.desktop).processes) process.kill(p.pid, 'SIGKILL');
    expect(await lost).toMatch(/^local-\w+ was lost .* is being replaced\.$/);
    let answer = await fetch(`${url}/screenshot`);
    while (answer.status === 503) answer = await fetch(`${url}/screenshot`);
    expect(Buffer.from(await answer.arrayBuffer()).equals(first)).toBe(true);
  });
});
