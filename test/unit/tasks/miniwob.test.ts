import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BrowserAnswer, BrowserCommand } from '../../../runtime/cluster/types.js';
import { parseRunFile } from '../../../runtime/config/index.js';
import { id, toRunError, type FamilyId } from '../../../runtime/domain/index.js';
import {
  isMiniwob,
  MiniwobEngine,
  MiniwobSource,
  openPages,
  openTasks,
  type Pages,
} from '../../../runtime/tasks/index.js';
import { FakeDesktop } from '../../helpers/tasks/fakeDesktop.js';
import { writePages } from '../../helpers/tasks/wobPages.js';

let dir: string, pages: Pages;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-wob-'));
  pages = await openPages(await writePages(dir));
});
afterAll(() => rm(dir, { recursive: true }));
const never = new AbortController().signal;
const family = id<FamilyId>('miniwob/two-buttons');

/** A desktop whose browser answers as told, and what it was asked. */
function browsing(
  ...answers: readonly BrowserAnswer[]
): FakeDesktop & { readonly asked: (readonly BrowserCommand[])[] } {
  const asked: (readonly BrowserCommand[])[] = [],
    left = [...answers];
  return Object.assign(new FakeDesktop(), {
    asked,
    browse: (commands: readonly BrowserCommand[]) => {
      asked.push(commands);
      return Promise.resolve(left.shift() ?? { ok: [] });
    },
  });
}
const begun: BrowserAnswer = { ok: [{}, { value: ' Click on the "Yes" button. ' }, {}] };
const page = (error: string, at = 1): BrowserAnswer => ({ error, at, kind: 'page' });
const kindOf = (p: Promise<unknown>): Promise<string> =>
  p.then(
    () => 'none',
    (e: unknown) => `${toRunError(e).kind}: ${toRunError(e).message}`,
  );

describe('a copy of MiniWoB++', () => {
  it('is found in a checkout, an unpacked wheel and the folder itself, and nowhere else', async () => {
    const wheel = join(dir, 'wheel');
    await writePages(join(wheel, 'miniwob', 'html'));
    for (const place of [dir, wheel, join(wheel, 'miniwob')]) expect(await isMiniwob(place)).toBe(true);
    await mkdir(join(dir, 'tasks'));
    await writeFile(join(dir, 'tasks', 'a.json'), '{}');
    expect(await isMiniwob(join(dir, 'tasks'))).toBe(false);
    expect(await kindOf(openPages(join(dir, 'nowhere')))).toContain('is no copy of MiniWoB++');
    await rm(wheel, { recursive: true });
  });

  it('is packed whole, once', async () => {
    const packed = await pages.packed();
    expect(await pages.packed()).toBe(packed);
    const tar = gunzipSync(packed).toString('latin1');
    for (const name of ['core/core.js', 'miniwob/two-buttons.html', 'miniwob/typing.html']) expect(tar).toContain(name);
  });

  it('gives a family a page and a task a seed', () => {
    const s = new MiniwobSource(pages);
    expect(s.families.map((f) => f.id)).toEqual(['miniwob/two-buttons', 'miniwob/typing']);
    const t = s.task(family, 7);
    expect(t.id).toBe('miniwob/two-buttons#7');
    expect(s.byId(t.id)).toEqual(t);
    s.said(t, 'Click on the "No" button.');
    expect(s.byId(t.id).instruction).toBe('Click on the "No" button.');
    expect(s.task(family, 8).instruction).not.toContain('No');
    for (const bad of ['miniwob/none#1', 'miniwob/typing', 'miniwob/typing#x'])
      expect(() => s.byId(id(bad))).toThrow(`There is no task ${bad}`);
  });

  it('is evaluated page by page: a browser that stays on its page begins sooner', async () => {
    const config = parseRunFile({ tasks: { suite: 'miniwob', dir } }),
      tasks = await openTasks(config, { apps: [], programs: [] });
    for (const probes of [tasks.probes(6), tasks.probesOf('heldout', 6), tasks.probesOf('train', 6)])
      expect(probes.map((p) => p.family)).toEqual([
        ...Array<string>(3).fill('miniwob/two-buttons'),
        ...Array<string>(3).fill('miniwob/typing'),
      ]);
    // As many of each as in turn, and one more of the first.
    expect(tasks.probes(3).map((p) => p.family)).toEqual([
      'miniwob/two-buttons',
      'miniwob/two-buttons',
      'miniwob/typing',
    ]);
  });

  it('asks other seeds of each page where the first are left out', async () => {
    const tasks = await openTasks(parseRunFile({ tasks: { suite: 'miniwob', dir } }), { apps: [], programs: [] });
    for (const split of ['heldout', 'train'] as const) {
      const seeds = (n: number, skip?: number): Map<string, number[]> => {
        const of = new Map<string, number[]>();
        for (const p of tasks.probesOf(split, n, 'test', skip)) of.set(p.family, [...(of.get(p.family) ?? []), p.seed]);
        return of;
      };
      for (const [page, all] of seeds(20)) {
        expect(all).toHaveLength(10);
        expect(seeds(12, 4).get(page)).toEqual(all.slice(4));
      }
    }
  });

  it('is a suite of run files, on desktops that keep a browser', async () => {
    const config = parseRunFile({ tasks: { suite: 'miniwob', dir, families: ['typing'] } });
    expect(config.desktops).toMatchObject({ image: 'web', memoryMb: 1024, pids: 512 });
    const tasks = await openTasks(config, { apps: [], programs: [] });
    expect(tasks.families.map((f) => f.id)).toEqual(['miniwob/typing']);
    const trained = new Set(tasks.probesOf('train', 20).map((p) => p.seed));
    for (const p of [...tasks.probes(20), ...tasks.probesOf('heldout', 20)]) expect(trained.has(p.seed)).toBe(false);
    expect(tasks.probesOf('words', 4)).toEqual([]);
    expect(() => parseRunFile({ tasks: { suite: 'miniwob' } })).toThrow('tasks.dir: required');
    expect(() => parseRunFile({ tasks: { suite: 'miniwob', dir }, desktops: { image: 'desk' } })).toThrow(
      'desktops.image',
    );
    expect(
      await kindOf(
        openTasks(parseRunFile({ tasks: { suite: 'miniwob', dir, families: ['typo'] } }), { apps: [], programs: [] }),
      ),
    ).toContain('miniwob/typo: no such page');
  });
});

describe('an episode of MiniWoB++', () => {
  const task = (): ReturnType<MiniwobSource['task']> => new MiniwobSource(pages).task(family, 7);

  it('begins with the seed, says what is to be done, and shows neither that nor the time', async () => {
    const said: string[] = [],
      engine = new MiniwobEngine(pages, (t, text) => said.push(`${t.id} ${text}`)),
      d = browsing(begun);
    await engine.setup(task(), d, never);
    const [open, run] = d.asked[0]! as [{ open: string }, { run: string }];
    expect(open.open).toMatch(/^file:\/\/.*\/miniwob\/two-buttons\.html$/);
    expect(run.run).toContain('Math.seedrandom("7")');
    expect(engine.instruction(task(), d)).toBe('Click on the "Yes" button.');
    expect(said).toEqual(['miniwob/two-buttons#7 Click on the "Yes" button.']);
  });

  it('has BrowserGym’s time limit from its start on', async () => {
    const d = browsing(begun),
      limits: number[] = [],
      element = { style: { setProperty: () => {} } };
    await new MiniwobEngine(pages).setup(task(), d, never);
    // As core.js has it: the timer is set when the episode starts, to what the limit is then.
    const core = {
      EPISODE_MAX_TIME: 10_000,
      startEpisodeReal: () => limits.push(core.EPISODE_MAX_TIME),
      getUtterance: () => 'Click on the "Yes" button.',
    };
    const scripts = d.asked[0]!.flatMap((c) => ('run' in c ? [c.run] : [])),
      said = scripts.map((script): unknown =>
        runInNewContext(script, {
          core,
          document: { documentElement: element, getElementById: () => element },
          Math: { seedrandom: () => {} },
        }),
      );
    expect(said).toEqual(['Click on the "Yes" button.']);
    expect(limits).toEqual([1_000_000]);
  });

  it('brings the pages into a desktop that lacks them, once', async () => {
    const d = browsing(page('net::ERR_FILE_NOT_FOUND', 0), begun, begun),
      engine = new MiniwobEngine(pages);
    await engine.setup(task(), d, never);
    await engine.setup(task(), d, never);
    expect(d.log.filter((l) => l.includes('tar '))).toHaveLength(1);
    expect(d.asked).toHaveLength(3);
  });

  it.each<[string, BrowserAnswer, string]>([
    [
      'a page whose script fails',
      page('ReferenceError: core is not defined'),
      'task.setup: miniwob/two-buttons cannot begin',
    ],
    [
      'a page that hangs',
      { error: 'no answer', at: 1, kind: 'hung' },
      'task.setup: miniwob/two-buttons did not begin in time',
    ],
    ['a page that asks for nothing', { ok: [{}, { value: ' ' }, {}] }, 'it does not say what is to be done'],
    ['a browser that has ended', { error: 'The browser ended.', at: 0, kind: 'browser' }, 'desktop.lost'],
  ])('%s is an error before the policy has acted', async (_, answer, words) => {
    expect(await kindOf(new MiniwobEngine(pages).setup(task(), browsing(answer), never))).toContain(words);
  });

  it('needs a desktop that keeps a browser', async () => {
    expect(await kindOf(new MiniwobEngine(pages).setup(task(), new FakeDesktop(), never))).toContain(
      'task.unsupported',
    );
  });

  it.each([
    [{ done: false, raw: 0, reason: '' }, false, 'failure', 'not finished'],
    [{ done: true, raw: 1, reason: '' }, true, 'success', '1'],
    [{ done: true, raw: 0.4, reason: 'half' }, true, 'success', '0.4 (half)'],
    [{ done: true, raw: 0, reason: '' }, true, 'failure', '0'],
    [{ done: true, raw: -1, reason: 'timed out' }, true, 'failure', '-1 (timed out)'],
    // What a page says is not ours.
    [{ done: true, raw: 'a lot' }, false, 'failure', 'no longer answers'],
    [null, false, 'failure', 'no longer answers'],
  ] as const)('%j', async (value, over, kind, found) => {
    const engine = new MiniwobEngine(pages),
      d = browsing({ ok: [{ value }] }, { ok: [{ value }] });
    expect(await engine.over(task(), d, never)).toBe(over);
    const v = await engine.verify(task(), d, undefined, never);
    expect([v.kind, v.reward]).toEqual([kind, kind === 'success' ? 1 : 0]);
    expect(v.report?.checks[0]?.found).toContain(found);
  });

  it('whose browser gets no processor is asked again, and one that hangs by itself is not', async () => {
    const engine = new MiniwobEngine(pages),
      hung: BrowserAnswer = { error: 'no answer', at: 0, kind: 'hung' },
      won: BrowserAnswer = { ok: [{ value: { done: true, raw: 1, reason: '' } }] };
    const judged = async (starved: number | undefined): Promise<[string, number]> => {
      const d = browsing(hung, hung, won);
      d.settle = () => Promise.resolve({ settled: false, ms: 500, detector: 'exact', starved });
      return [(await engine.verify(task(), d, undefined, never)).kind, d.asked.length];
    };
    expect(await judged(0.9)).toEqual(['success', 3]);
    expect(await judged(0.1)).toEqual(['failure', 1]);
    expect(await judged(undefined)).toEqual(['failure', 1]);
  });

  it('that the policy has broken has failed; without a browser there is no verdict', async () => {
    const engine = new MiniwobEngine(pages);
    for (const answer of [
      page('WOB_DONE_GLOBAL is not defined', 0),
      { error: 'no answer', at: 0, kind: 'hung' } as const,
    ]) {
      expect(await engine.over(task(), browsing(answer), never)).toBe(false);
      expect(await engine.verify(task(), browsing(answer), undefined, never)).toMatchObject({
        kind: 'failure',
        reward: 0,
      });
    }
    const gone: BrowserAnswer = { error: 'There is no browser.', at: 0, kind: 'browser' };
    expect(await kindOf(engine.verify(task(), browsing(gone), undefined, never))).toContain('desktop.lost');
  });
});
