import { spawnSync } from 'node:child_process';
import { watch } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openAssets, uuid5 } from '../../../runtime/tasks/index.js';
import { readManifest } from '../../../runtime/tasks/assets.js';
import { isPublicAddress, openDownload } from '../../../runtime/tasks/download.js';
import { downloadsOf, fetchAssets } from '../../../runtime/tasks/fetch.js';
import { never, taskOf } from '../../helpers/tasks/fakeDesktop.js';

/**
 * A file host with faults: answers by path (`waits` is never answered), and what was asked of it. The version of a file
 * is its text, and a part is given of no other.
 */
let dir: string, server: Server, base: string, tagged: boolean;
const files = new Map<string, string | number>(),
  asked: string[] = [];
const tagOf = (text: string): string => `"${uuid5(text)}"`;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'fetch-'));
  files.clear();
  asked.length = 0;
  tagged = true;
  server = createServer((q, r) => {
    const range = q.headers.range,
      at = Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? 0),
      found = files.get(q.url!);
    asked.push(`${q.url!}${range === undefined ? '' : ` from ${at}`}`);
    if (found === 'waits') return;
    if (typeof found !== 'string') return void r.writeHead(found ?? 404).end();
    const goesOn = range !== undefined && (!tagged || q.headers['if-range'] === tagOf(found));
    r.writeHead(goesOn ? 206 : 200, {
      ...(tagged ? { ETag: tagOf(found) } : {}),
      ...(goesOn ? { 'Content-Range': `bytes ${at}-${found.length - 1}/${found.length}` } : {}),
    });
    r.end(goesOn ? found.slice(at) : found);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  server.close();
  server.closeAllConnections();
  await rm(dir, { recursive: true });
});
const fetched = (urls: string[], mirror?: string) =>
  fetchAssets(urls, { into: dir, mirror, allowPrivate: true, signal: never });

describe('tasks fetch', () => {
  it('mirrors files that runs then find, each once', async () => {
    files.set('/x/a.txt', 'alpha');
    const url = `${base}/x/a.txt`;
    expect(await fetched([url])).toMatchObject({ fetched: 1, there: 0, failed: 0, bytes: 5 });
    expect((await (await openAssets(dir)).read(url, { name: 'whatever.txt' })).toString()).toBe('alpha');
    expect(await fetched([url])).toMatchObject({ fetched: 0, there: 1 });
    expect(asked).toEqual(['/x/a.txt']);
  });

  it('removes the list that a killed command did not finish, and no file of its owner', async () => {
    const dead = spawnSync(process.execPath, ['-e', '']).pid,
      part = `manifest.json.${dead}-0-1.tmp`,
      own = `notes.${dead}.tmp`;
    for (const f of [part, own]) await writeFile(join(dir, f), '');
    files.set('/a', 'alpha');
    await fetched([`${base}/a`]);
    const left = await readdir(dir);
    expect(left).not.toContain(part);
    expect(left).toContain(own);
  });
  const cutOff = async (path: string, begun: string, of?: string): Promise<void> => {
    const part = join(dir, `${uuid5(`${base}${path}`)}.part`);
    await writeFile(part, begun);
    if (of !== undefined) await writeFile(`${part}.version`, tagOf(of));
  };
  it('goes on where it was cut off', async () => {
    files.set('/long', 'abcdefgh');
    await cutOff('/long', 'abc', 'abcdefgh');
    await fetched([`${base}/long`]);
    expect(asked).toEqual(['/long from 3']);
    expect((await (await openAssets(dir)).read(`${base}/long`)).toString()).toBe('abcdefgh');
    // The lock stays, as locks of its kind do; of the part nothing is left.
    expect((await readdir(dir)).sort()).toEqual(['.fetching', uuid5(`${base}/long`), 'manifest.json'].sort());
  });
  it.each([
    ['the server has another file by now', 'the old one', true],
    ['nobody knows what was begun', undefined, true],
    ['the server does not tell its files apart', undefined, false],
  ])('begins anew where %s', async (_what, of, tags) => {
    tagged = tags;
    files.set('/long', 'abcdefgh');
    await cutOff('/long', 'xyz', of);
    expect(await fetched([`${base}/long`])).toMatchObject({ fetched: 1, bytes: 8 });
    expect((await (await openAssets(dir)).read(`${base}/long`)).toString()).toBe('abcdefgh');
  });
  it.each([
    ['another part than was asked for', ['bytes 2-7/8', 'cdefgh'], ['all', 'abcdefgh']],
    ['less than it said there is', ['bytes 3-6/8', 'defg'], ['bytes=7-', 'h']],
  ] as const)('a server that gives %s is asked again', async (_what, [range, text], [then, rest]) => {
    await cutOff('/long', 'abc', 'abcdefgh');
    const ranges: string[] = [];
    server.removeAllListeners('request');
    server.on('request', (q, r) => {
      ranges.push(q.headers.range ?? 'all');
      if (ranges.length === 1) r.writeHead(206, { 'Content-Range': range }).end(text);
      else if (then === 'all') r.writeHead(200).end(rest);
      else r.writeHead(206, { 'Content-Range': 'bytes 7-7/8' }).end(rest);
    });
    expect(await fetched([`${base}/long`])).toMatchObject({ fetched: 1, bytes: 8 });
    expect(ranges).toEqual(['bytes=3-', then]);
    expect((await (await openAssets(dir)).read(`${base}/long`)).toString()).toBe('abcdefgh');
  });
  it('one call at a time fetches into a folder; another waits for it', async () => {
    files.set('/a', 'alpha').set('/slow', 'waits');
    const stop = new AbortController(),
      first = fetchAssets([`${base}/slow`], { into: dir, allowPrivate: true, signal: stop.signal }),
      ended = expect(first).rejects.toMatchObject({ kind: 'cancelled' });
    await expect.poll(() => asked).toEqual(['/slow']);
    let waited = false;
    const second = fetchAssets([`${base}/a`], {
      into: dir,
      allowPrivate: true,
      signal: never,
      onWait: () => {
        waited = true;
        stop.abort();
      },
    });
    await ended;
    expect(await second).toMatchObject({ fetched: 1 });
    expect([waited, asked]).toEqual([true, ['/slow', '/a']]);
  });
  it('does not download again what had finished when it was killed', async () => {
    files.set('/a', 'alpha').set('/b', 'beta').set('/slow', 'waits');
    const urls = ['/a', '/b', '/slow'].map((path) => base + path),
      stop = new AbortController(),
      first = fetchAssets(urls, { into: dir, allowPrivate: true, signal: stop.signal, atOnce: 1 }),
      ended = expect(first).rejects.toMatchObject({ kind: 'cancelled' });
    try {
      // The first one at once, the second a second later, while the third is still under way.
      await expect.poll(async () => Object.keys((await readManifest(dir)).files)).toEqual(urls.slice(0, 2));
      await expect.poll(() => asked).toEqual(['/a', '/b', '/slow']);
      const killed = join(dir, 'killed');
      await mkdir(killed);
      const names = ['manifest.json', ...urls.slice(0, 2).map(uuid5)];
      for (const name of names) await copyFile(join(dir, name), join(killed, name));
      expect(await fetchAssets(urls.slice(0, 2), { into: killed, signal: never })).toMatchObject({ there: 2 });
      expect(asked).toHaveLength(3);
      // Not even a lock: it may be a folder that can only be read.
      expect((await readdir(killed)).toSorted()).toEqual(names.toSorted());
    } finally {
      stop.abort();
      await ended;
    }
  });
  it('writes its manifest once a second at most, however many files finish', async () => {
    const urls = Array.from({ length: 60 }, (_, i) => `${base}/n${i}`);
    for (let i = 0; i < 60; i++) files.set(`/n${i}`, `file ${i}`);
    const began = performance.now();
    let written = 0;
    const watcher = watch(dir, (_event, name) => {
      if (name === 'manifest.json') written++;
    });
    try {
      expect(await fetched(urls)).toMatchObject({ fetched: 60 });
      expect(Object.keys((await readManifest(dir)).files)).toHaveLength(60);
    } finally {
      watcher.close();
    }
    expect(written).toBeLessThanOrEqual(3 + (performance.now() - began) / 1000);
  });
  it.each([
    ['a file that takes too long', { fileMs: 20 }, /^it is not there after .*start the command again/],
    ['a call that takes too long', { ms: 20 }, /^fetching has taken more than .*start the command again/],
  ])('%s is told, and the command ends', async (_what, limits, why) => {
    files.set('/slow', 'waits');
    const r = await fetchAssets([`${base}/slow`], { into: dir, allowPrivate: true, signal: never, limits });
    expect(r).toMatchObject({ failed: 1, files: [{ state: 'failed', error: expect.stringMatching(why) as string }] });
  });
  it('a call fetches so many bytes and no more; the next one goes on', async () => {
    files.set('/a', 'alpha').set('/b', 'beta').set('/c', 'gamma');
    const urls = ['/a', '/b', '/c'].map((path) => base + path),
      o = { into: dir, allowPrivate: true, signal: never, atOnce: 1 },
      r = await fetchAssets(urls, { ...o, limits: { bytes: 6 } });
    expect(r.files.map((f) => f.state)).toEqual(['fetched', 'failed', 'failed']);
    expect(r.files[2]!.error).toContain('have arrived; start the command again');
    expect(asked).toEqual(['/a', '/b']);
    expect(await fetchAssets(urls, o)).toMatchObject({ there: 1, fetched: 2, failed: 0 });
  });
  it('takes another host for the one in the address', async () => {
    files.set('/copy/datasets/q/a.xlsx?download=true', 'sheet');
    const url = 'https://huggingface.co/datasets/q/a.xlsx?download=true';
    expect((await fetched([url], `${base}/copy/`)).fetched).toBe(1);
    expect((await openAssets(dir)).has(url)).toBe(true);
    await expect(fetched([url], 'ftp://x')).rejects.toMatchObject({ kind: 'config.invalid' });
  });
  it('a file that cannot be had is told, and the others go on', async () => {
    files.set('/good', 'x');
    const r = await fetched([`${base}/gone`, `${base}/good`]);
    expect(r).toMatchObject({ fetched: 1, failed: 1 });
    expect(r.files.find((f) => f.state === 'failed')).toMatchObject({
      url: `${base}/gone`,
      error: expect.stringContaining('404') as string,
    });
  });
  it('what is no address is a problem of that file alone, with a mirror and without', async () => {
    files.set('/good', 'x');
    for (const mirror of [base, undefined]) {
      const r = await fetched(['gold/a.xlsx', 'file:///etc/passwd', `${base}/good`], mirror);
      expect(r).toMatchObject({ failed: 2 });
      expect(r.files.map((f) => [f.url, f.state, f.error])).toEqual([
        ['file:///etc/passwd', 'failed', 'it is no http or https address'],
        ['gold/a.xlsx', 'failed', 'it is no http or https address'],
        [`${base}/good`, mirror === undefined ? 'there' : 'fetched', undefined],
      ]);
    }
  });
  it('asks nothing of this machine for a task file, however it is named', async () => {
    files.set('/secret', 'x');
    const { port } = new URL(base),
      names = ['127.0.0.1', 'localhost', '[::1]', '[::ffff:127.0.0.1]', '2130706433', '0'].map(
        (host) => `http://${host}:${port}/secret`,
      );
    const r = await fetchAssets(names, { into: dir, signal: never });
    expect(r).toMatchObject({ failed: names.length, fetched: 0 });
    for (const f of r.files) expect(f.error).toContain('--allow-private');
    expect(asked).toEqual([]);
  });
  it('a redirect leads to nothing that may not be asked', async () => {
    const elsewhere = `${base.replace('127.0.0.1', '127.0.0.2')}/secret`;
    server.removeAllListeners('request');
    server.on('request', (q, r) => {
      asked.push(q.url!);
      r.writeHead(302, { Location: q.url === '/there' ? '/here' : elsewhere }).end();
    });
    const o = { headers: {}, mayAsk: (ip: string) => ip === '127.0.0.1', signal: never };
    await expect(openDownload(`${base}/there`, o)).rejects.toThrow('127.0.0.2 is an address of this machine');
    expect(asked).toEqual(['/there', '/here']);
  });
  it('a server that sends one round in circles is left', async () => {
    server.removeAllListeners('request');
    server.on('request', (_q, r) => r.writeHead(302, { Location: '/again' }).end());
    const r = await fetched([`${base}/round`]);
    expect(r.files[0]?.error).toContain('more than 5 times');
  });
  it('a file that comes compressed is not taken for the file', async () => {
    server.removeAllListeners('request');
    server.on('request', (_q, r) => r.writeHead(200, { 'Content-Encoding': 'gzip' }).end('xx'));
    expect((await fetched([`${base}/a`])).files[0]?.error).toContain('compresses');
  });
  it.each([
    ['8.8.8.8', true],
    ['2606:4700::1111', true],
    ['172.15.255.255', true],
    ['172.32.0.0', true],
    ['10.1.2.3', false],
    ['172.16.0.1', false],
    ['172.31.255.255', false],
    ['192.168.1.1', false],
    ['169.254.169.254', false],
    ['100.64.0.1', false],
    ['0.0.0.0', false],
    ['::', false],
    ['::1', false],
    ['::ffff:8.8.8.8', false],
    ['fe80::1', false],
    ['fd00:ec2::254', false],
    ['2002:7f00:1::', false],
    ['64:ff9b::7f00:1', false],
    ['64:ff9b::a9fe:a9fe', false],
    ['64:ff9b::', false],
    ['64:ff9b::808:808', true],
    ['64:ff9b::8.8.8.8', true],
    ['64:ff9b:1::808:808', false],
  ])('%s is an address of the internet: %s', (ip, is) => {
    expect(isPublicAddress(ip)).toBe(is);
  });
  it('an address of any length is looked up, in no more room than it takes', async () => {
    await writeFile(join(dir, 'deep.txt'), 'deep');
    const assets = await openAssets(dir);
    expect(assets.has(`https://host/${'a/'.repeat(400_000)}x`)).toBe(false);
  });
  it('a file that is not what the manifest says is not used', async () => {
    files.set('/a', 'right');
    const url = `${base}/a`;
    await fetched([url]);
    const [name] = Object.values(
      (JSON.parse(await readFile(join(dir, 'manifest.json'), 'utf8')) as { files: Record<string, { file: string }> })
        .files,
    ).map((f) => f.file);
    await writeFile(join(dir, name!), 'wrong');
    await expect((await openAssets(dir)).read(url)).rejects.toMatchObject({ kind: 'task.unsupported' });
  });
  it('knows downloads, gold files and the empty history', () => {
    const task = taskOf(
      {
        func: 'compare_csv',
        result: { type: 'vm_file', path: '/a', dest: 'a' },
        expected: { type: 'cloud_file', multi: true, path: ['https://h/1', 'https://h/2'], dest: ['1', '2'] },
      },
      [
        { type: 'download', parameters: { files: [{ url: 'https://h/0', path: '/home/user/0' }] } },
        { type: 'update_browse_history', parameters: { history: [] } },
      ],
    );
    expect(downloadsOf([{ row: undefined as never, file: 't.json', task }])).toEqual([
      'https://h/0',
      'https://h/1',
      'https://h/2',
      expect.stringContaining('history_empty.sqlite') as string,
    ]);
  });
});
