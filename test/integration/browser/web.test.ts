import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLocalProvider } from '../../../runtime/cluster/index.js';
import { ensureRootfs } from '../../../runtime/cluster/imageBuild.js';
import { BrowserProvider } from '../../../runtime/cluster/providers/keepBrowser.js';
import type { BrowserAnswer, Desktop } from '../../../runtime/cluster/types.js';
import { id, type Action, type FamilyId } from '../../../runtime/domain/index.js';
import { MiniwobEngine, MiniwobSource, openPages } from '../../../runtime/tasks/index.js';
import { SMALL, sh, whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { cli, endAll, ensureBundle } from '../../helpers/run/cli.js';
import { BROKEN_PAGES, writePages } from '../../helpers/tasks/wobPages.js';

const why = await whyNoLocalDesktops();
if (why) console.warn(`skipped: ${why}`);
const never = new AbortController().signal;
const WEB = { ...SMALL, memoryMb: 1024, pids: 512 };

describe.skipIf(why)('a desktop that keeps a browser open', () => {
  let dir: string, engine: MiniwobEngine, source: MiniwobSource, d: Desktop;
  const p = new BrowserProvider(createLocalProvider({ image: 'web' }));
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'dart-web-'));
    const pages = await openPages(await writePages(dir));
    engine = new MiniwobEngine(pages);
    source = new MiniwobSource(pages);
    ensureBundle();
    await ensureRootfs({ image: 'web' });
    d = await p.create(WEB);
  }, 600_000);
  afterAll(async () => {
    await p.dispose();
    await rm(dir, { recursive: true, force: true });
  });

  const begin = async (page: string, seed: number): Promise<string> => {
    const task = source.task(id<FamilyId>(`miniwob/${page}`), seed);
    await engine.setup(task, d, never);
    await d.settle();
    return engine.instruction(task, d);
  };
  const act = async (...actions: Action[]): Promise<void> => {
    for (const a of actions) {
      await d.perform(a);
      await d.settle();
    }
  };
  const verdict = async (): Promise<string> => {
    const task = source.task(id<FamilyId>('miniwob/two-buttons'), 1),
      v = await engine.verify(task, d, undefined, never);
    return `${String(await engine.over(task, d, never))} ${v.kind} ${v.report?.checks[0]?.found ?? ''}`;
  };
  const value = (a: BrowserAnswer): unknown => ('ok' in a ? a.ok[0]?.value : a.error);
  const ask = async (script: string): Promise<unknown> => value(await d.browse!([{ run: script }]));
  /** Its process and when that began: a reset counts processes anew. */
  const browser = (): Promise<string> => sh(d, 'cut -d" " -f1,22 /proc/$(pgrep -o chromium)/stat');
  /** Where a button's middle is on the screen. */
  const middle = async (name: string): Promise<{ x: number; y: number }> =>
    (await ask(
      `(() => { const r = [...document.querySelectorAll('button')].find((b) => b.textContent === '${name}').getBoundingClientRect(), k = devicePixelRatio;
        return { x: Math.round((r.x + r.width / 2) * k), y: Math.round((r.y + r.height / 2) * k) }; })()`,
    )) as { x: number; y: number };

  it('plays episodes: pages are clicked and typed into, and say how it ended', async () => {
    const said = await begin('two-buttons', 1),
      wanted = /"(\w+)"/.exec(said)![1]!,
      other = wanted === 'Yes' ? 'No' : 'Yes';
    expect(await verdict()).toBe('false failure not finished');
    await act({ type: 'click', at: await middle(wanted) });
    expect(await verdict()).toBe('true success 1');
    expect(await begin('two-buttons', 1)).toBe(said);
    await act({ type: 'click', at: await middle(other) });
    expect(await verdict()).toBe('true failure -1');
    await begin('typing', 1);
    await act({ type: 'type', text: 'hi' }, { type: 'hotkey', keys: ['enter'] });
    expect(await verdict()).toBe('true success 0.5 (typed hi)');
  });

  it('shows the same screen for the same seed, and neither what is asked for nor the time left', async () => {
    const look = async (seed: number): Promise<Buffer> => {
      await begin('two-buttons', seed);
      return Buffer.from((await d.observe()).data);
    };
    const screens: Buffer[] = [];
    for (const seed of [1, 2, 3, 4, 5, 6]) screens.push(await look(seed));
    // Two orders of the buttons; which one is asked for cannot be seen.
    expect(new Set(screens.map((s) => s.toString('base64'))).size).toBe(2);
    for (const [i, screen] of screens.entries()) expect((await look(i + 1)).equals(screen)).toBe(true);
    expect(await ask("getComputedStyle(document.getElementById('query')).visibility")).toBe('hidden');
    expect(await ask("getComputedStyle(document.getElementById('reward-display')).display")).toBe('none');
  });

  it('is reset with its browser kept, to the same first frame, whatever was pressed, and nothing is left', async () => {
    await p.reset(d);
    const first = Buffer.from((await d.observe()).data),
      one = await browser();
    for (const page of ['two-buttons', 'typing', 'typing', 'two-buttons']) {
      await begin(page, 2);
      await ask("localStorage.setItem('left', 'over'), document.cookie = 'left=over'");
      await act({ type: 'click', at: { x: 60, y: 100 } }, { type: 'type', text: 'left over' });
      await d.spawn(['sleep', '1000']);
      await d.input!([{ type: 'key', key: 'Shift', down: true }]);
      await p.reset(d);
      expect(Buffer.from((await d.observe()).data).equals(first), `after ${page}`).toBe(true);
      expect(await browser()).toBe(one);
      expect(await sh(d, 'pgrep -x sleep || true')).toBe('');
    }
    await begin('typing', 2);
    expect(await ask("String(localStorage.getItem('left')) + document.getElementById('t').value")).toBe('null');
    await act({ type: 'type', text: 'hi' });
    expect(await ask("document.getElementById('t').value")).toBe('hi');
  });

  it('offers no way out of the page: tools, tabs, windows, other pages, menus of the right button', async () => {
    await begin('two-buttons', 1);
    const screen = Buffer.from((await d.observe()).data);
    const keys: string[][] = [
      ['ctrl', 'shift', 'i'], ['ctrl', 'shift', 'j'], ['f12'], ['ctrl', 'u'], ['ctrl', 't'], ['ctrl', 'n'], ['ctrl', 'shift', 'n'],
      ['ctrl', 'o'], ['ctrl', 's'], ['ctrl', 'p'], ['ctrl', 'h'], ['ctrl', 'l'], ['alt', 'd'], ['ctrl', 'w'], ['alt', 'f4'], ['f11'],
      ['ctrl', 'plus'], ['ctrl', '-'], ['f6'], ['f7'], ['shift', 'escape'], ['alt', 'left'], ['f5'], ['ctrl', 'r'],
    ]; // prettier-ignore
    for (const k of keys) await act({ type: 'hotkey', keys: k });
    await act({ type: 'right_single', at: { x: 300, y: 200 } }, { type: 'right_single', at: { x: 60, y: 100 } });
    await d.input!([{ type: 'move', x: 320, y: 200 }]);
    await d.settle();
    expect((await d.observe()).data.equals(screen)).toBe(true);
    expect(await verdict()).toBe('false failure not finished');
    // Nor does a page lead to one.
    const went = await d.browse!([{ open: 'file:///etc/passwd' }]);
    expect('error' in went && went.error).toContain('BLOCKED_BY_ADMINISTRATOR');
  });

  it('starts another browser where one has ended', async () => {
    await begin('two-buttons', 1);
    const before = await browser();
    await sh(d, 'pkill -9 chromium; true');
    await expect(engine.verify(source.task(id('miniwob/typing'), 1), d, undefined, never)).rejects.toMatchObject({
      kind: 'desktop.lost',
    });
    await p.reset(d);
    expect(await browser()).not.toBe(before);
    expect(await begin('two-buttons', 1)).toContain('Click on the');
  });

  it('tasks check: each page is opened, and a broken one says why and holds none up', async () => {
    const broken = await mkdtemp(join(tmpdir(), 'dart-web-'));
    try {
      await writePages(broken, BROKEN_PAGES);
      const { code, stdout, stderr } = await cli('tasks', 'check', broken, '--json', '--provider', 'local');
      expect(code, stderr).toBe(1);
      const runnable = (page: string, utterance: unknown): unknown => ({
          id: `miniwob/${page}`,
          status: 'runnable',
          needs: [],
          utterance,
        }),
        not = (page: string, words: string): unknown => ({
          id: `miniwob/${page}`,
          status: 'unsupported',
          needs: [expect.stringContaining(words)],
          error: { kind: 'task.setup', message: expect.stringContaining(words), remedy: expect.any(String) },
        });
      expect(JSON.parse(stdout)).toEqual({
        tasks: [
          not('never-begins', 'did not begin in time'),
          not('no-problem', 'genProblem is not defined'),
          not('silent', 'does not say what is to be done'),
          runnable('two-buttons', expect.stringMatching(/^Click on the "(Yes|No)" button\.$/)),
          runnable('typing', 'Type hi and press Enter.'),
        ],
      });
    } finally {
      await endAll();
      await rm(broken, { recursive: true });
    }
  });
});
