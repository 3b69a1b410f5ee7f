import { resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensureRootfs } from '../../../runtime/cluster/imageBuild.js';
import { createLocalProvider } from '../../../runtime/cluster/index.js';
import type { Desktop } from '../../../runtime/cluster/types.js';
import {
  createTaskEngine,
  installEvaluators,
  metricWorkers,
  openEvaluators,
  parseTask,
} from '../../../runtime/tasks/index.js';
import type { Task } from '../../../runtime/tasks/types.js';
import { SMALL, whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';

const why = await whyNoLocalDesktops();
if (why) console.warn(`skipped: tabs of a real browser (${why})`);
const never = new AbortController().signal;
/** The one place whose pages the browser of the image web may open. */
const PAGES = 'file:///var/tmp/pages';

/**
 * Steps and getters of OSWorld's browser tasks, on a real Chromium, judged by OSWorld's own evaluators: no task file of
 * the benchmark has pages without the web.
 */
describe.skipIf(why)('tabs of a real browser', () => {
  const provider = createLocalProvider({ image: 'web' });
  let d: Desktop, engine: ReturnType<typeof createTaskEngine>;
  beforeAll(async () => {
    await ensureRootfs({ image: 'web' });
    await installEvaluators();
    const evaluators = (await openEvaluators({ idleMs: 1000 }))!,
      image = { apps: ['chrome'], programs: ['python3', 'chromium'], shortcuts: [] };
    engine = createTaskEngine({ image, evaluators, metrics: metricWorkers({ file: resolve('dist/runtime.js') }) });
    d = await provider.create({ ...SMALL, memoryMb: 1024, pids: 512 });
    for (const name of ['a', 'b', 'c'])
      await d.writeFile(
        `/var/tmp/pages/${name}.html`,
        Buffer.from(`<!doctype html><title>Page ${name}</title><h1 class="head">${name} says hello</h1>`),
      );
  }, 900_000);
  afterAll(() => provider.dispose());

  const task = (config: readonly object[], evaluator: object): Task =>
    parseTask(
      { id: 'tabs', instruction: 'Look.', related_apps: ['chrome'], config, evaluator: { ...evaluator } },
      'tabs.json',
    );
  const reward = async (evaluator: object): Promise<number | string> => {
    const v = await engine.verify(task([], evaluator), d, { type: 'finished' }, never);
    return v.reward;
  };
  const tabs = (...pages: string[]): object => ({
    func: 'is_expected_tabs',
    result: { type: 'open_tabs_info' },
    expected: { type: 'rule', rules: { type: 'url', urls: pages.map((p) => `${PAGES}/${p}.html`) } },
  });

  it('are opened and closed by set-up, and seen by the getters of the evaluators', async () => {
    const browser = [
      'chromium --no-sandbox --disable-gpu --no-first-run --user-data-dir=/tmp/browser',
      '--remote-debugging-port=1337 --remote-allow-origins=* about:blank',
    ].join(' ');
    await engine.setup(
      task(
        [
          { type: 'launch', parameters: { command: browser, shell: true } },
          {
            type: 'chrome_open_tabs',
            parameters: { urls_to_open: ['a', 'b', 'c'].map((p) => `${PAGES}/${p}.html`) },
          },
        ],
        tabs('a', 'b', 'c'),
      ),
      d,
      never,
    );
    expect(await reward(tabs('a', 'b', 'c'))).toBe(1);
    expect(await reward(tabs('a', 'b'))).toBe(0);
    await engine.setup(
      task([{ type: 'chrome_close_tabs', parameters: { urls_to_close: [`${PAGES}/b.html`] } }], tabs('a', 'c')),
      d,
      never,
    );
    expect(await reward(tabs('a', 'c'))).toBe(1);
  }, 120_000);

  it('a page of its own is opened and read by a getter', async () => {
    const page = (shown: string, expected: string): object => ({
      func: 'is_expected_active_tab',
      result: { type: 'page_info', url: `${PAGES}/${shown}.html` },
      expected: { type: 'rule', rules: { type: 'url', url: `${PAGES}/${expected}.html` } },
    });
    expect([await reward(page('b', 'b')), await reward(page('b', 'a'))]).toEqual([1, 0]);
  }, 120_000);

  it('words of a page are looked up while a task is judged', async () => {
    const words = (expected: string): object => ({
      func: 'literal_match',
      result: {
        type: 'info_from_website',
        url: `${PAGES}/a.html`,
        infos: [{ action: 'inner_text', selector: '.head' }],
        backups: ['none'],
      },
      expected: { type: 'rule', rules: [expected] },
      options: { type: 'list' },
    });
    expect([await reward(words('a says hello')), await reward(words('b says hello'))]).toEqual([1, 0]);
  }, 120_000);
});
