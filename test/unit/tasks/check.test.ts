import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FamilyId, TaskId } from '../../../runtime/domain/index.js';
import { id } from '../../../runtime/domain/index.js';
import {
  checkFolder,
  createTaskEngine,
  formatCheck,
  giveAssets,
  MARK,
  noAssets,
  openAssets,
  openFolder,
  openNamedAssets,
  uuid5,
} from '../../../runtime/tasks/index.js';
import { getters } from '../../../runtime/tasks/getters/index.js';
import { needsOf } from '../../../runtime/tasks/needs.js';
import { desk } from '../../helpers/tasks/images.js';
import { taskOf } from '../../helpers/tasks/fakeDesktop.js';
import { cacheName } from '../../helpers/tasks/files.js';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'check-'));
});
afterEach(() => rm(dir, { recursive: true }));
async function put(path: string, content: unknown): Promise<void> {
  await mkdir(dirname(join(dir, path)), { recursive: true });
  await writeFile(join(dir, path), typeof content === 'string' ? content : JSON.stringify(content));
}
const task = (name: string, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  id: name,
  instruction: 'x',
  config: [],
  evaluator: { func: 'infeasible' },
  related_apps: ['os'],
  ...more,
});

describe('assets', () => {
  const url = 'https://huggingface.co/datasets/x/resolve/main/multi_apps/a%20b/in.xlsx';
  const read = async (hint?: { name?: string; task?: string }): Promise<string> =>
    (await (await openAssets(dir)).read(url, hint)).toString();
  it("by OSWorld's cache name, in any folder", async () => {
    await put(`cache/t1/${cacheName(url, '/home/user/in.xlsx')}`, 'one');
    expect(await read({ name: 'in.xlsx' })).toBe('one');
    expect(await read({ name: 'other' })).toBe('one');
  });
  it('the exact name before another of the same URL', async () => {
    await put(`a/${uuid5(url)}_a`, 'a');
    await put(`b/${uuid5(url)}_b`, 'b');
    expect(await read({ name: 'b' })).toBe('b');
  });
  it('as a mirror: host and path, or the end of the path', async () => {
    await put('a b/in.xlsx', 'tail');
    expect(await read()).toBe('tail');
    await put('huggingface.co/datasets/x/resolve/main/multi_apps/a b/in.xlsx', 'full');
    expect(await read()).toBe('full');
  });
  it('a base name alone does not do: many tasks have an in.xlsx', async () => {
    await put('in.xlsx', 'x');
    expect((await openAssets(dir)).has(url)).toBe(false);
  });
  it("gold files in OSWorld's cache of the task", async () => {
    await put('t1/gold.xlsx', 'gold');
    expect(await read({ name: 'gold.xlsx', task: 't1' })).toBe('gold');
    expect((await openAssets(dir)).has(url, { name: 'gold.xlsx', task: 't2' })).toBe(false);
  });
  it('a missing one is unsupported and says how to supply it', async () => {
    await expect(read()).rejects.toMatchObject({
      kind: 'task.unsupported',
      error: { remedy: expect.stringContaining(uuid5(url)) as string, details: { needs: [`asset:${url}`] } },
    });
    await expect(noAssets.read(url)).rejects.toMatchObject({
      error: { remedy: expect.stringContaining('--assets') as string },
    });
  });
  it('a folder that is not there is a wrong argument', async () => {
    await expect(openAssets(join(dir, 'none'))).rejects.toMatchObject({ kind: 'config.invalid' });
  });
  it('of a folder that a run file names are given to tasks when the folder says so, and then all of them', async () => {
    // A run file with `assets: "../.."` and a task that downloads https://x/.ssh/id_rsa.
    await put('.ssh/id_rsa', 'secret');
    await expect(openNamedAssets(dir)).rejects.toMatchObject({
      kind: 'config.invalid',
      error: { remedy: expect.stringContaining(MARK) as string },
    });
    await symlink('/etc/hostname', join(dir, MARK));
    await expect(openNamedAssets(dir)).rejects.toMatchObject({ kind: 'config.invalid' });
    await rm(join(dir, MARK));
    await put(MARK, '');
    expect((await (await openNamedAssets(dir)).read('https://x/.ssh/id_rsa')).toString()).toBe('secret');
  });
  it('of a mirror that a run file names are those of its manifest, and no others', async () => {
    await put('host/a.txt', 'a');
    await put('.ssh/id_rsa', 'secret');
    await put('manifest.json', { files: {} });
    await expect(openNamedAssets(dir)).rejects.toMatchObject({ kind: 'config.invalid' });
    const sha256 = createHash('sha256').update('a').digest('hex');
    await put('manifest.json', { files: { 'https://host/a.txt': { file: join('host', 'a.txt'), bytes: 1, sha256 } } });
    const assets = await openNamedAssets(dir);
    expect((await assets.read('https://host/a.txt')).toString()).toBe('a');
    expect(assets.has('https://x/.ssh/id_rsa')).toBe(false);
  });
  it.each([
    ['lists without end', '['.repeat(200_000), /within one another/],
    ['more files than tasks have', `{"files":{"a":[${'[],'.repeat(1 << 16)}[]]}}`, /more than 32768 values/],
    ['no JSON', '}{', /is not JSON/],
    ['an entry without a sum', '{"files":{"https://h/a":{"file":"a","bytes":1}}}', /is no manifest/],
    ['more than is read', ' '.repeat((8 << 20) + 1), /at most 8388608/],
  ])('of a mirror whose manifest holds %s are not used', async (_what, text, words) => {
    await put('manifest.json', text);
    for (const open of [openNamedAssets, openAssets])
      await expect(open(dir)).rejects.toMatchObject({
        kind: 'config.invalid',
        message: expect.stringMatching(words) as string,
      });
  });
  it('of a folder that the command line names are all given', async () => {
    await put('x/y.txt', 'y');
    await expect(openNamedAssets(dir)).rejects.toMatchObject({ kind: 'config.invalid' });
    expect((await openNamedAssets(giveAssets(dir))).has('https://h/x/y.txt')).toBe(true);
  });
  it('URLs cannot reach outside the folder', async () => {
    expect((await openAssets(dir)).has('https://x/../../etc/passwd')).toBe(false);
  });
});

describe('needs', () => {
  const engine = createTaskEngine({ image: desk });
  const step = (type: string, parameters: unknown): unknown => ({ type, parameters });
  it.each([
    ['nothing', [], [], []],
    [
      'an application by its many names',
      ['LibreOffice Calc', 'calc', 'vs_code', 'VSCode', 'Terminal'],
      [],
      ['app:libreoffice', 'app:vscode'],
    ],
    [
      'what a file type needs',
      ['os'],
      [step('open', { path: '/a.pdf' }), step('open', { path: '/a.xlsx' }), step('open', { path: '/a.txt' })],
      ['app:pdf-viewer'],
    ],
    [
      'programs of commands',
      ['os'],
      [
        step('execute', { command: 'gsettings set a b c', shell: true }),
        step('launch', { command: ['google-chrome', '--x'] }),
        step('execute', { command: ['bash', '-c', 'echo p | sudo -S ls'] }),
      ],
      ['app:chrome', 'program:gsettings', 'program:sudo'],
    ],
    [
      'python and pyautogui have stand-ins',
      ['os'],
      [step('execute', { command: ['python', '-c', 'import pyautogui; pyautogui.press("enter")'] })],
      [],
    ],
    [
      'shortcuts',
      ['os'],
      [step('execute', { command: ['python', '-c', "import pyautogui; pyautogui.hotkey('ctrl', 'alt', 't')"] })],
      ['shortcut:ctrl+alt+t'],
    ],
    [
      'the network',
      ['os'],
      [step('googledrive', {}), step('execute', { command: 'apt-get install -y x', shell: true })],
      ['network', 'setup:googledrive'],
    ],
  ] as const)('%s', (_what, related_apps, config, needs) => {
    expect(engine.check(taskOf({ func: 'infeasible' }, [...config], { related_apps }))).toEqual(needs);
  });
  it('a live web task needs the network', () => {
    const live = taskOf({ func: 'infeasible' }, [step('execute', { command: 'wget https://x.org/y', shell: true })], {
      proxy: true,
    });
    expect(engine.check(live)).toEqual(['network']);
    // Where the run file gives desktops one.
    expect(createTaskEngine({ image: { ...desk, network: true } }).check(live)).toEqual([]);
  });
  it.each([
    ['a tab of the web', step('chrome_open_tabs', { urls_to_open: ['chrome://settings', 'https://x.org/y'] }), true],
    ['a tab without a scheme', step('chrome_open_tabs', { urls_to_open: ['x.org'] }), true],
    ['tabs of the desktop', step('chrome_open_tabs', { urls_to_open: ['chrome://settings', 'file:///a.b/c'] }), false],
    ['a tab of a local server', step('chrome_open_tabs', { urls_to_open: ['http://localhost:8000/x.html'] }), false],
    ['the browser on a page', step('launch', { command: ['google-chrome', 'https://x.org'] }), true],
    ['the browser on a local server', step('launch', { command: 'google-chrome http://127.0.0.1:1/' }), false],
    ['a request to a local server', step('execute', { command: 'curl http://localhost:1/', shell: true }), false],
  ] as const)('%s: of the web or not', (_what, s, web) => {
    const image = { ...desk, apps: [...desk.apps, 'chrome'] };
    expect(createTaskEngine({ image }).check(taskOf({ func: 'infeasible' }, [s], { related_apps: ['os'] }))).toEqual(
      web ? ['network'] : [],
    );
  });
  it.each([
    ['echo password | sudo -S apt-get update -y && echo password | sudo -S apt-get install unzip -y && unzip x', true],
    ['sudo apt install -y jq unzip; jq . x', true],
    ['sudo apt-get install -y unzip cowsay', false],
    ['apt-get install -y unzip', false],
    ['sudo snap install jq', false],
    ['sudo apt install jq && pip install unzip', false],
  ] as const)('packages that the image has need no network: %s', (command, without) => {
    const image = { ...desk, programs: [...desk.programs, 'sudo'], packages: ['jq', 'unzip'] },
      t = taskOf({ func: 'infeasible' }, [step('execute', { command, shell: true })], { related_apps: ['os'] });
    expect(createTaskEngine({ image }).check(t)).toEqual(without ? [] : ['network']);
    expect(createTaskEngine({ image: { ...image, packages: [] } }).check(t)).toEqual(['network']);
  });
  it.each([
    ['info_from_website', ['network'], []],
    ['pdf_from_url', ['network'], []],
    ['gotoRecreationPage_and_get_html_content', ['network:judge'], ['network:judge']],
  ] as const)('what %s asks is the web, of the desktop or of where it is judged', (type, without, having) => {
    const offers = { getters: new Set([type]), metrics: new Set(['exact_match']) },
      t = taskOf({ func: 'exact_match', result: { type: 'vm_screen_size' }, expected: { type } }, [], {
        related_apps: ['os'],
      });
    expect(needsOf(t, noAssets, desk, offers)).toEqual(without);
    expect(needsOf(t, noAssets, { ...desk, network: true }, offers)).toEqual(having);
  });
  it.each([
    ['https://www.youtube.com/watch?v=x', ['network']],
    ['http://localhost:8000/x.m3u8', []],
  ])('a stream that VLC is to play is of the web or not, by the rule alone: %s', (url, needs) => {
    const t = taskOf({
      func: ['is_vlc_playing'],
      result: [{ type: 'vlc_playing_info', dest: 'x' }],
      expected: [{ type: 'rule', rules: { type: 'url', url } }],
    });
    expect(engine.check(t)).toEqual(needs);
  });
  it('a user of the system cannot be made on a desktop', () => {
    const t = taskOf({
      func: 'exact_match',
      result: { type: 'vm_command_line', command: 'getent passwd charles', shell: true },
      expected: { type: 'rule', rules: { expected: 'x' } },
    });
    expect(engine.check(t)).toEqual(['root']);
    expect(createTaskEngine({ image: { ...desk, network: true } }).check(t)).toEqual(['root']);
    // OSWorld's own machine has its sudo.
    expect(createTaskEngine({ image: { ...desk, root: true } }).check(t)).toEqual([]);
  });
  it('depend on what the image holds', () => {
    const image = { apps: [...desk.apps, 'libreoffice'], programs: ['sudo'], shortcuts: ['ctrl+alt+t'] };
    const t = taskOf({ func: 'infeasible' }, [step('execute', { command: 'sudo ls; python x.py', shell: true })], {
      related_apps: ['libreoffice_calc'],
    });
    expect(createTaskEngine({ image }).check(t)).toEqual(['program:python']);
  });
  it('options we do not have', () => {
    expect(engine.check(taskOf({ func: 'check_json', options: { is_yaml: true } }))).toEqual([
      'metric:check_json[is_yaml]',
    ]);
  });
  it('infeasible is no metric among others', () => {
    expect(engine.check(taskOf({ func: ['infeasible', 'exact_match'] }))).toEqual(['metric:infeasible']);
  });
});

describe('a folder', () => {
  beforeEach(async () => {
    await put('os/b.json', task('b'));
    await put(
      'os/a.json',
      task('a', {
        evaluator: {
          func: 'exact_match',
          result: { type: 'rule', rules: 1 },
          expected: { type: 'cloud_file', path: 'https://x/g', dest: 'g' },
        },
      }),
    );
    await put('gimp/c.json', task('c', { related_apps: ['gimp'] }));
    await put('test_all.json', { os: ['b', 'a'], gimp: ['c'] });
    await put('notes.txt', 'no task');
  });
  it('a row for each task file in path order; lists of ids are passed over', async () => {
    expect(await checkFolder(dir, { image: desk })).toEqual([
      {
        id: 'c',
        status: 'unsupported',
        needs: ['app:gimp'],
        runs: 'not',
        with: [],
        why: ['no image has the application gimp'],
      },
      {
        id: 'a',
        status: 'unsupported',
        needs: ['asset:https://x/g'],
        runs: 'with',
        with: ['--assets DIR, made by `tasks fetch`'],
        why: [],
      },
      { id: 'b', status: 'runnable', needs: [], runs: 'here', with: ['our own evaluator'], why: [] },
    ]);
  });
  it('says what would make a task run, and why one cannot', async () => {
    const judged = (func: string, result: unknown = { type: 'vm_file', path: '/a', dest: 'a' }): object =>
      task(func, { evaluator: { func, result, expected: { type: 'rule', rules: {} } } });
    await put('z/1.json', judged('compare_docx_tables'));
    await put('z/2.json', judged('compare_pdfs'));
    await put('z/3.json', judged('compare_image_text'));
    await put('z/4.json', judged('exact_match', { type: 'googledrive_file' }));
    const office = { apps: ['gimp'], programs: [] },
      rows = await checkFolder(dir, { image: desk, images: { office } }),
      of = (id: string): unknown => {
        const { runs, with: what, why } = rows.find((r) => r.id === id)!;
        return [runs, ...what, ...why];
      };
    expect(of('c')).toEqual(['with', '--image office']);
    expect(of('compare_docx_tables')).toEqual(['with', '`dart-studio osworld install`']);
    expect(of('compare_pdfs')).toEqual(['with', '`dart-studio osworld install --full`']);
    expect(of('compare_image_text')).toEqual(['not', expect.stringContaining('easyocr')]);
    expect(of('exact_match')).toEqual(['not', 'it needs a Google account', 'what judges it visits the live web']);
    const evaluators = { getters: new Set<string>(), metrics: new Set(['compare_docx_tables']) },
      installed = await checkFolder(dir, { image: desk, evaluators });
    expect(installed.find((r) => r.id === 'compare_docx_tables')).toMatchObject({ runs: 'here' });
  });
  it('invalid files and double ids are rows with an error, not the end', async () => {
    await put('z/bad.json', '{');
    await put('z/twin.json', task('b'));
    const rows = await checkFolder(dir, { image: desk });
    expect(rows).toHaveLength(5);
    expect(rows.filter((r) => r.error).map((r) => [r.id, r.status, r.error!.kind])).toEqual([
      [join('z', 'bad.json'), 'unsupported', 'task.invalid'],
      [join('z', 'twin.json'), 'unsupported', 'task.invalid'],
    ]);
  });
  it('as text: one line each, then totals by need', async () => {
    await put('z/bad.json', '{');
    const text = formatCheck(await checkFolder(dir, { image: desk }));
    expect(text).toMatch(/^c +needs app:gimp: not, no image has the application gimp$/m);
    expect(text).toMatch(/^a +needs 1 asset: runs with --assets DIR/m);
    expect(text).toMatch(/^b +runnable, judged by our own evaluator$/m);
    expect(text).toContain('4 tasks: 1 runnable, 1 runnable with what they name, 1 not, 1 invalid');
    expect(text).toMatch(/^ +1 +1 {2}app:gimp$/m);
  });
  it('a folder that is not there', async () => {
    await expect(checkFolder(join(dir, 'none'), { image: desk })).rejects.toMatchObject({ kind: 'task.invalid' });
  });

  it('as a source: the runnable tasks, each its own family', async () => {
    const s = await openFolder(dir, { image: desk, heldout: (t) => t === 'b', steps: 9 });
    expect(s.families).toEqual([{ id: 'b', split: 'heldout', apps: ['os'], steps: 9, infeasible: true }]);
    expect(s.task(id<FamilyId>('b'), 5)).toBe(s.byId(id<TaskId>('b')));
    expect(s.skipped.map((r) => r.id)).toEqual(['c', 'a']);
    expect(() => s.byId(id<TaskId>('a'))).toThrow(/no runnable task a/);
  });
  it('a folder without a runnable task is refused', async () => {
    await rm(join(dir, 'os'), { recursive: true });
    await expect(openFolder(dir, { image: desk })).rejects.toMatchObject({ kind: 'task.unsupported' });
  });
});

describe("the room's page", () => {
  it('names every getter there is', async () => {
    const page = await readFile('runtime/tasks/README.md', 'utf8'),
      [, section] = /## Getters\n(.*?)\n## /s.exec(page)!;
    for (const name of Object.keys(getters)) expect(section).toContain(`\`${name}\``);
  });
});
