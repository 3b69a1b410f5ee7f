import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Task } from '../../../runtime/tasks/types.js';
import type { AssetStore } from '../../../runtime/tasks/assets.js';
import { desktopPath } from '../../../runtime/tasks/context.js';
import { getterConfigs } from '../../../runtime/tasks/needs.js';
import { FakeDesktop } from '../../helpers/tasks/fakeDesktop.js';

/**
 * Files of the right formats, made by made.py; what a task downloads is one of them by its ending, and what it is
 * compared with has other contents.
 */
export class MadeFiles {
  readonly #dir: string;
  constructor(dir: string) {
    this.#dir = dir;
  }
  of(name: string, kind: 'made' | 'gold' = 'made'): Buffer {
    const ext = /\.([a-z0-9]+)(?:\?.*)?$/i.exec(name)?.[1]?.toLowerCase() ?? 'txt',
      file = join(this.#dir, `${kind}.${ext}`);
    return readFileSync(existsSync(file) ? file : join(this.#dir, `${kind}.txt`));
  }
  get assets(): AssetStore {
    return this.#store(() => 'made');
  }
  /**
   * For a real desktop: gold files, and downloads that are called gold, differ from what the task downloads otherwise, so
   * that an untouched desktop is no success.
   */
  assetsOf(task: Task): AssetStore {
    const downloads = new Set(
        task.config.flatMap((s) =>
          s.type === 'download'
            ? ([s.parameters['files']].flat() as { url?: unknown; path?: unknown }[])
                .filter((f) => !/gold/i.test(String(f.path)))
                .map((f) => String(f.url))
            : [],
        ),
      ),
      isGold = (url: string): boolean => !downloads.has(url);
    return this.#store((url) => (isGold(url) ? 'gold' : 'made'));
  }
  #store(kindOf: (url: string) => 'made' | 'gold'): AssetStore {
    return {
      dir: this.#dir,
      has: () => true,
      read: (url, hint) =>
        Promise.resolve(this.of(hint?.name && /\.\w+$/.test(hint.name) ? hint.name : url, kindOf(url))),
    };
  }
}

export type Candidate = 'gold' | 'missing' | 'broken';

/**
 * A made desktop for one task: the files that its getters read are like the gold files, missing, or broken; programs
 * answer, with nothing of what the task asks for.
 */
export function madeDesktop(task: Task, made: MadeFiles, candidate: Candidate): FakeDesktop {
  const d = new FakeDesktop((argv, o) => answer(argv, String(o.stdin ?? '')));
  for (const path of pathsOf(task))
    if (candidate !== 'missing')
      d.files.set(desktopPath(path), candidate === 'broken' ? Buffer.from([0xff, 0xfe, 0, 1, 2]) : made.of(path));
  for (const [path, data] of Object.entries(PROFILE)) if (!d.files.has(path)) d.files.set(path, Buffer.from(data));
  return d;
}

function pathsOf(task: Task): string[] {
  const configs = getterConfigs(task);
  return configs
    .filter((c) => c['type'] !== 'cloud_file' && c['type'] !== 'rule')
    .flatMap((c) => [c['path'], c['ppt_file_path']].flat())
    .filter((p): p is string => typeof p === 'string' && !/^https?:/.test(p));
}

const CHROME = '/home/user/.config/google-chrome';
/** A Chrome profile and settings as they are after a first start. */
const PROFILE: Readonly<Record<string, string>> = {
  [`${CHROME}/Default/Preferences`]: JSON.stringify({
    profile: { name: 'Person 1' },
    session: {},
    extensions: { settings: {} },
    webkit: { webprefs: {} },
  }),
  [`${CHROME}/Local State`]: JSON.stringify({ browser: {}, profile: {} }),
  [`${CHROME}/Default/Bookmarks`]: JSON.stringify({ roots: { bookmark_bar: { children: [] } } }),
  '/home/user/.config/vlc/vlcrc': 'qt-privacy-ask=0\n',
};

const TREE = `<desktop-frame xmlns:st="https://accessibility.ubuntu.example.org/ns/state"><application name="Google Chrome"><entry name="Address and search bar">example.org</entry></application></desktop-frame>`;
const PAGE = { id: 'p', type: 'page', title: 'Example', url: 'https://example.org/' };

function answer(argv: readonly string[], stdin: string): { stdout: string } {
  const [program, flag, code = ''] = argv;
  if (program === 'python3' && flag === '-c') {
    if (code.includes('/devtools/page/')) return { stdout: JSON.stringify({ answer: browser(stdin) }) };
    if (code.includes('desktop-frame') || code.includes('getDesktop(0), 0')) return { stdout: TREE };
    const home = /os\.getenv\('HOME'\), *["']([^"']+)["']/.exec(code)?.[1],
      parts = /os\.getenv\('HOME'\)((?:, *['"][^'"]+['"])+)/.exec(code)?.[1];
    if (parts !== undefined && home !== undefined)
      return { stdout: `/home/user/${[...parts.matchAll(/['"]([^'"]+)['"]/g)].map((m) => m[1]).join('/')}\n` };
    const expanded = /expanduser\('~\/([^']+)'\)/.exec(code)?.[1];
    if (expanded !== undefined) return { stdout: `/home/user/${expanded}\n` };
  }
  return { stdout: '' };
}

function browser(stdin: string): unknown {
  const o = JSON.parse(stdin) as { op: string; steps?: [string, { expression?: string }][] };
  if (o.op === 'targets') return [PAGE];
  if (o.op === 'open') return PAGE;
  if (o.op !== 'call') return true;
  return (o.steps ?? []).map(([, { expression = '' }]) => ({ result: { value: valueOf(expression) } }));
}
const valueOf = (expression: string): unknown =>
  /readyState/.test(expression)
    ? 'complete'
    : /location\.href/.test(expression)
      ? PAGE.url
      : /\.length$/.test(expression)
        ? 0
        : /outerHTML/.test(expression)
          ? '<html><body></body></html>'
          : '';
