import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';

vi.mock('vscode', () => ({
  window: {},
  workspace: { getConfiguration: () => ({ get: (_key: string, otherwise: unknown) => otherwise }) },
}));

const { tellTargets } = await import('../../../extension/alerts.js');
const { ofThisMachine, requireHere } = await import('../../../extension/attached.js');
const { buttonsFor } = await import('../../../extension/errorWords.js');
const { commands } = await import('../../../extension/ids.js');
const { fetchedIn, fetchPictures, forgetFetched, picturesOf, sweepFetched } =
  await import('../../../extension/panels/remotePictures.js');

const dir = mkdtempSync(join(tmpdir(), 'dart-attached-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const remote = { name: 'train-x', reach: () => Promise.reject(new Error('not asked')), dispose: () => undefined };
const hash = (c: string): string => c.repeat(64);

describe('a runtime elsewhere', () => {
  it('is told nothing of who is to hear of alerts here', () => {
    const asked: unknown[] = [],
      to = (r: object | undefined): never =>
        ({
          client: {
            state: 'ready',
            remote: r,
            request: (m: unknown) => {
              asked.push(m);
              return Promise.resolve({});
            },
          },
          log: { warn: () => undefined },
        }) as never;
    tellTargets(to(remote));
    expect(asked).toEqual([]);
    tellTargets(to(undefined));
    expect(asked).toHaveLength(1);
  });

  it('is handed no path of this machine', () => {
    for (const id of [
      commands.startTraining,
      commands.importTrajectories,
      commands.exportTrajectories,
      commands.exportPage,
      commands.exportTable,
      commands.recordDemonstration,
      commands.tryPolicy,
      commands.addToQueue,
      commands.stopRuntime,
      commands.restartRuntime,
      commands.deleteRun,
      commands.deleteAllData,
    ])
      expect(ofThisMachine.has(id), id).toBe(true);
    for (const id of [
      commands.attachRuntime,
      commands.detachRuntime,
      commands.startRuntime,
      commands.stopTraining,
      commands.pause,
      commands.takeOver,
      commands.watchDesktop,
      commands.openDashboard,
    ])
      expect(ofThisMachine.has(id), id).toBe(false);
    expect(() => requireHere(undefined)).not.toThrow();
    expect(() => requireHere(remote)).toThrow(
      expect.objectContaining({
        kind: 'attached',
        message: expect.stringContaining('train-x') as string,
        remedy: expect.stringContaining('Detach') as string,
      }) as Error,
    );
    expect(buttonsFor('attached').map((b) => b.command)).toEqual([commands.detachRuntime]);
  });

  it('fills its own folder with pictures, and no other', async () => {
    expect(picturesOf('/c', '../../x y')).toBe(`${fetchedIn('/c')}/-x-y`);
    expect(fetchedIn('/c')).toMatch(new RegExp(`^/c/attached/${process.pid}-\\d{13}$`));
    const folder = picturesOf(dir, 'train-x'),
      png = Buffer.from('a picture'),
      asked: unknown[] = [],
      runtime = {
        call: (method: string, params: { hashes: string[] }) => {
          asked.push([method, params.hashes]);
          return Promise.resolve({
            pictures: {
              [hash('a')]: png.toString('base64'),
              [hash('c')]: 7,
              '../../evil': png.toString('base64'),
              [hash('d')]: png.toString('base64'),
            },
          });
        },
      } as never;
    const get = (hashes: string[], width = 320): ReturnType<typeof fetchPictures> =>
      fetchPictures(runtime, { run: '/r', hashes, width }, folder, new AbortController().signal);
    const { paths } = await get([hash('a'), hash('b'), hash('c'), '../../evil']);
    expect(Object.keys(paths)).toEqual([hash('a')]);
    expect(readFileSync(paths[hash('a')]!)).toEqual(png);
    expect(readdirSync(dir, { recursive: true, withFileTypes: true }).filter((e) => e.isFile())).toHaveLength(1);
    // What is here already is not asked for again.
    await get([hash('a')]);
    await get([hash('a'), hash('d')]);
    expect(asked).toEqual([
      ['frame/pictures', [hash('a'), hash('b'), hash('c')]],
      ['frame/pictures', [hash('b'), hash('c')]],
      ['frame/pictures', [hash('d')]],
    ]);
    await get([hash('d')], '../..' as never);
    expect(readdirSync(folder).sort()).toEqual(['320', 'NaN']);
  });

  it('is asked again for pictures that an answer had no room for, and two requests for one do not meet', async () => {
    const all = [hash('1'), hash('2'), hash('3')];
    let asked = 0;
    const runtime = {
      call: (_m: string, { hashes }: { hashes: string[] }) => {
        asked++;
        // One in each answer; the last is not there.
        const [first] = hashes.filter((h) => h !== hash('3'));
        return Promise.resolve({ pictures: first ? { [first]: Buffer.from(first).toString('base64') } : {} });
      },
    } as never;
    const folder = picturesOf(join(dir, 'two'), 'train-x'),
      get = (): ReturnType<typeof fetchPictures> =>
        fetchPictures(runtime, { run: '/r', hashes: all, width: 64 }, folder, new AbortController().signal);
    for (const { paths } of await Promise.all([get(), get(), get()])) {
      expect(Object.keys(paths).sort()).toEqual(all.slice(0, 2));
      for (const [h, path] of Object.entries(paths)) expect(readFileSync(path, 'utf8')).toBe(h);
    }
    expect(asked).toBe(9);
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((e) => e.isFile());
    expect(files.map((e) => e.name).sort()).toEqual(all.slice(0, 2).map((h) => `${h}.png`));
  });

  it('leaves no pictures behind: not those of this window, nor for longer than a day those of one that crashed', async () => {
    const cache = join(dir, 'three'),
      of = (name: string, days: number): string => {
        const folder = join(cache, 'attached', name),
          at = Date.now() / 1000 - days * 86_400;
        mkdirSync(join(folder, 'train-x'), { recursive: true });
        utimesSync(folder, at, at);
        return folder;
      };
    await sweepFetched(cache);
    const left = of('1-00000000', 1.1),
      other = of('2-00000000', 0.9);
    mkdirSync(picturesOf(cache, 'train-x'), { recursive: true });
    await sweepFetched(cache);
    expect([left, other, fetchedIn(cache)].map((f) => existsSync(f))).toEqual([false, true, true]);
    forgetFetched(cache);
    forgetFetched(cache);
    expect([other, fetchedIn(cache)].map((f) => existsSync(f))).toEqual([true, false]);
  });
});
