import fc from 'fast-check';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FolderWatch, parseDiscovery, readDiscovery } from '../../../extension/daemon/discovery.js';
import { discoveryFile } from '../../../runtime/protocol/version.js';
import { removeDiscovery, writeDiscovery } from '../../../runtime/server/discovery.js';

const good = {
  pid: 7,
  port: 4000,
  token: 'ab'.repeat(32),
  protocol: 1,
  minClient: 1,
  build: { version: '1.0.0', time: 5 },
  startedAt: 9,
};
let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'dart-discovery-'));
});
afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

describe('the record', () => {
  it('what the daemon writes is what a client reads, until the daemon removes its own', async () => {
    await writeDiscovery(dir, good);
    expect(await readDiscovery(dir)).toEqual(good);
    await removeDiscovery(dir, 'another token');
    expect(await readDiscovery(dir)).toEqual(good);
    await removeDiscovery(dir, good.token);
    expect(existsSync(join(dir, discoveryFile))).toBe(false);
    await removeDiscovery(dir, good.token);
    expect(await readDiscovery(dir)).toBeUndefined();
  });
  it('that others can read or write is not believed', async () => {
    await writeDiscovery(dir, good);
    for (const [mode, believed] of [
      [0o640, false],
      [0o604, false],
      [0o620, false],
      [0o600, true],
      [0o400, true],
    ] as const) {
      chmodSync(join(dir, discoveryFile), mode);
      expect((await readDiscovery(dir)) !== undefined, mode.toString(8)).toBe(believed);
    }
  });
  it('a record with a missing or malformed field is not read', async () => {
    for (const wrong of [
      { pid: -1 },
      { pid: '7' },
      { port: 0 },
      { port: 65_536 },
      { port: 1.5 },
      { token: 'ab' },
      { token: 'zz'.repeat(32) },
      { token: undefined },
      { protocol: null },
      { minClient: 'x' },
      { build: null },
      { build: { version: 1, time: 1 } },
      { build: { version: '1' } },
      { startedAt: NaN },
    ])
      expect(parseDiscovery(JSON.stringify({ ...good, ...wrong })), JSON.stringify(wrong)).toBeUndefined();
    expect(parseDiscovery(JSON.stringify(good))).toEqual(good);
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => parseDiscovery(text) === undefined));
    writeFileSync(join(dir, discoveryFile), JSON.stringify(good) + ' '.repeat(5000), { mode: 0o600 });
    expect(await readDiscovery(dir)).toBeUndefined();
  });
});

describe('FolderWatch', () => {
  it('looks again at every change, also at one that comes while it looks', async () => {
    const w = await FolderWatch.open(dir),
      file = join(dir, 'x');
    let looks = 0;
    const found = await w.until(async () => {
      const there = existsSync(file);
      if (++looks === 1) writeFileSync(file, ''); // after the look, before the wait
      return there || undefined;
    }, 60_000);
    expect(found).toBe(true);
    w.close();
  });
  it('gives up at the deadline after one last look, and is woken by a nudge', async () => {
    const w = await FolderWatch.open(dir);
    expect(await w.until(async () => undefined, 1)).toBeUndefined();
    let nudged = false,
      go: () => void = () => undefined;
    const nudge = new Promise<void>((done) => {
      go = done;
    });
    const found = w.until(async () => nudged || undefined, 60_000, nudge);
    nudged = true;
    go();
    expect(await found).toBe(true);
    w.close();
  });
  it('makes the folder, for its owner', async () => {
    (await FolderWatch.open(join(dir, 'a', 'b'))).close();
    expect(existsSync(join(dir, 'a', 'b'))).toBe(true);
  });
});
