import type { ImageContents } from '../domain/index.js';
import type { AssetStore } from './assets.js';
import type { Evaluators } from './bridge/evaluators.js';
import { baseName } from './context.js';
import { getters } from './getters/index.js';
import { installs, installsOnly } from './installs.js';
import { INFEASIBLE, metrics } from './metrics/index.js';
import { EMPTY_HISTORY } from './setup/chrome.js';
import { openersOf } from './setup/openers.js';
import { isSetupType, setupParameters } from './taskFile.js';
import type { SetupStep, Task } from './types.js';
import { isDict, truthy } from './values.js';

/**
 * The needs that are not met before the task can run, sorted, each once: `setup:TYPE`, `getter:TYPE`, `metric:NAME`
 * (types we do not have; with `[option]` one of their options), `asset:URL`, `app:NAME`, `program:NAME`,
 * `shortcut:KEYS` (not in the image), `network`, `network:judge` (what judges it visits the live web), `root` (a user
 * of the system is made). Empty = runnable.
 */
export function needsOf(task: Task, assets: AssetStore, image: ImageContents, evaluators?: Offers): string[] {
  const needs = new Set<string>([...engineNeeds(task, evaluators), ...assetNeeds(task, assets)]);
  const steps = stepsOf(task);
  for (const a of task.relatedApps) {
    const app = normalApp(a);
    if (!image.apps.includes(app)) needs.add(`app:${app}`);
  }
  for (const s of steps) {
    if (s.type === 'open') {
      const openers = openersOf(String(s.parameters['path'] ?? ''));
      if (!openers.some((o) => image.apps.includes(o.app))) needs.add(`app:${openers[0]!.app}`);
    }
    if (ONLINE_STEPS.has(s.type) || openedPages(s).some((url) => LIVE_PAGE.test(url))) needs.add('network');
  }
  for (const text of commandTexts(task, steps)) for (const need of commandNeeds(text, image)) needs.add(need);
  const asked = getterConfigs(task).map((g) => String(g['type']));
  if (task.proxy || asked.some((g) => WEB_GETTERS.has(g)) || playsTheWeb(task)) needs.add('network');
  if (image.network) needs.delete('network');
  if (image.root) needs.delete('root');
  if (asked.some((g) => ONLINE_GETTERS.has(g))) needs.add('network:judge');
  return [...needs].sort();
}

/** Getters and metrics of OSWorld's own evaluators, where they are installed. */
export type Offers = Pick<Evaluators, 'getters' | 'metrics'>;

/** Whether a metric is ours; YAML is not. */
export const isNative = (func: string, options: Readonly<Record<string, unknown>>): boolean =>
  Object.hasOwn(metrics, func) && !(func === 'check_json' && truthy(options['is_yaml']));
/** Whether a getter is ours; null and {} mean "no getter here". */
export const hasGetter = (config: unknown): boolean =>
  !isDict(config) || Object.keys(config).length === 0 || Object.hasOwn(getters, String(config['type']));

/** The part no image can supply: types that neither this engine nor the evaluators have. */
export function engineNeeds(task: Task, evaluators?: Offers): string[] {
  const needs: string[] = stepsOf(task)
    .filter((s) => !isSetupType(s.type))
    .map((s) => `setup:${s.type}`);
  needs.push(
    ...getterConfigs(task)
      .filter((g) => !hasGetter(g) && !evaluators?.getters.has(String(g['type'])))
      .map((g) => `getter:${String(g['type'])}`),
  );
  const { func, result, expected } = task.evaluator,
    at = (v: unknown, i: number): unknown => (Array.isArray(v) ? v[i] : v);
  ([func].flat() as string[]).forEach((f, i, all) => {
    const o = at(task.evaluator.options, i),
      options = isDict(o) ? o : {};
    if (f === INFEASIBLE) {
      if (all.length > 1) needs.push(`metric:${f}`);
      return;
    }
    if (evaluators?.metrics.has(f)) return;
    if (!isNative(f, options)) needs.push(Object.hasOwn(metrics, f) ? 'metric:check_json[is_yaml]' : `metric:${f}`);
    else if (evaluators && !(hasGetter(at(result, i)) && hasGetter(at(expected, i)))) needs.push(`metric:${f}`);
  });
  return [...new Set(needs)].sort();
}

/** Downloads and gold files that the assets folder lacks. */
export const assetNeeds = (task: Task, assets: AssetStore): string[] => [
  ...new Set(
    assetsOf(task)
      .filter(({ url, name }) => !assets.has(url, { name, task: task.id }))
      .map(({ url }) => `asset:${url}`),
  ),
];

/** The downloads of a task: files for its set-up and gold files, each with the name that the task gives it. */
export function assetsOf(task: Task): { readonly url: string; readonly name: string }[] {
  const found: { url: string; name: string }[] = [];
  for (const s of stepsOf(task)) {
    const files = s.type === 'download' ? (setupParameters.download.safeParse(s.parameters).data?.files ?? []) : [];
    for (const f of files) found.push({ url: f.url, name: baseName(f.path) });
    if (s.type === 'update_browse_history') found.push({ url: EMPTY_HISTORY, name: 'history_empty.sqlite' });
  }
  for (const g of getterConfigs(task)) {
    if (g['type'] !== 'cloud_file') continue;
    const urls = [g['path']].flat().map(String),
      names = [g['dest']].flat().map(String);
    urls.forEach((url, i) => found.push({ url, name: names[i] ?? baseName(url) }));
  }
  return found;
}

export const stepsOf = (task: Task): readonly SetupStep[] => [...task.config, ...(task.evaluator.postconfig ?? [])];

export function getterConfigs(task: Task): Record<string, unknown>[] {
  return [task.evaluator.result, task.evaluator.expected]
    .flat()
    .filter((g): g is Record<string, unknown> => isDict(g) && g['type'] !== undefined);
}

const ONLINE_STEPS = new Set(['googledrive', 'login']);
/** Getters that open pages of the web in the desktop's own browser. */
const WEB_GETTERS = new Set(['info_from_website', 'pdf_from_url']);
/** Getters that ask the web from where the task is judged, which is no desktop. */
const ONLINE_GETTERS = new Set(['googledrive_file', 'gotoRecreationPage_and_get_html_content']);

const APP_NAMES: readonly (readonly [RegExp, string])[] = [
  [/^(libre ?office|calc|writer|impress|excel)/, 'libreoffice'],
  [/^(vs[ _]?code|code)$/, 'vscode'],
  [/^(chrome|browser|google[ -]chrome|chromium)$/, 'chrome'],
  [/^pdf/, 'pdf-viewer'],
  [/^image/, 'image-viewer'],
  [/(^|_)media_player$/, 'vlc'],
  [/^(text ?editor|notes)$/, 'mousepad'],
  [/^(calculator)$/, 'galculator'],
  [/^(files?|file ?manager)$/, 'pcmanfm'],
];
const normalApp = (a: string): string => {
  const n = a.trim().toLowerCase();
  return APP_NAMES.find(([r]) => r.test(n))?.[1] ?? n;
};

/** Programs in task commands that an image may lack, and what the need is called. */
const PROGRAMS: readonly (readonly [{ test(text: string): boolean }, string])[] = [
  [/\b(google-chrome|chromium)\b/, 'app:chrome'],
  [/\b(soffice|libreoffice)\b/, 'app:libreoffice'],
  [/(^|[\s/;&|"'])gimp\b/, 'app:gimp'],
  [/(^|[\s/;&|"'])vlc\b/, 'app:vlc'],
  [/(^|[\s/;&|"'])thunderbird\b/, 'app:thunderbird'],
  [/^code\b|[;&|] *code\b/, 'app:vscode'],
  [/\bnautilus\b/, 'app:nautilus'],
  [/\b(gsettings|dconf)\b/, 'program:gsettings'],
  [/\bgnome-(?!favorite)[a-z-]+\b/, 'app:gnome'],
  [/\bsudo\b/, 'program:sudo'],
  [/\bsocat\b/, 'program:socat'],
  [/\bffmpeg\b/, 'program:ffmpeg'],
  [/\bpyautogui\b/, 'program:pyautogui'],
  [/\btimedatectl\b/, 'program:timedatectl'],
  [/\bpactl\b/, 'program:pactl'],
  [/^python\b|[;&|] *python\b/, 'program:python'],
  [/(^|[\s;&|])gio\b/, 'program:gio'],
  [/\bxdg-(open|mime)\b/, 'program:xdg-utils'],
  [/\b(getent +passwd|useradd|adduser|usermod|chpasswd)\b/, 'root'],
  [/hotkey\((\[ *)?["']ctrl["'], *["']alt["'], *["']t["']/, 'shortcut:ctrl+alt+t'],
  [{ test: downloads }, 'network'],
];
/** A program that downloads or shows pages, and an address of another machine behind it on the same line. */
export function downloads(text: string): boolean {
  return text.split(/[\n\r\u2028\u2029]/).some((line) => {
    const program = /\b(wget|curl|git clone|google-chrome|chromium)\b/.exec(line);
    return program !== null && LIVE_ADDRESS.test(line.slice(program.index + program[0].length));
  });
}
const LIVE_ADDRESS = /https?:(?!\/\/(localhost|127\.))/i;
/** A tab without a scheme is a page of the web too. */
const LIVE_PAGE = /^(https?:(?!\/\/(localhost|127\.))|(?!localhost\b|127\.)[\w-]+\.[\w.-]+(\/|$))/i;
const openedPages = (s: SetupStep): readonly string[] =>
  s.type === 'chrome_open_tabs' ? [s.parameters['urls_to_open']].flat().map(String) : [];
/** Whether VLC is to play a stream of the web, which only the rule of its metric names. */
const playsTheWeb = (task: Task): boolean =>
  [task.evaluator.func].flat().some((func, i) => {
    const expected: unknown = [task.evaluator.expected].flat()[i],
      rules = isDict(expected) ? expected['rules'] : undefined;
    return func === 'is_vlc_playing' && isDict(rules) && LIVE_PAGE.test(String(rules['url']));
  });
function commandNeeds(text: string, image: ImageContents): string[] {
  const has = new Set([
    ...image.apps.map((a) => `app:${a}`),
    ...image.programs.map((p) => `program:${p}`),
    ...(image.shortcuts ?? []).map((k) => `shortcut:${k}`),
  ]);
  // Our stand-ins (pyautogui.ts) need no more than this.
  if (has.has('program:python3')) has.add('program:python');
  if (has.has('program:python3') && has.has('program:xdotool')) has.add('program:pyautogui');
  const needs = PROGRAMS.filter(([r, need]) => r.test(text) && !has.has(need)).map(([, need]) => need);
  return installs(text) && !(has.has('program:sudo') && installsOnly(text, image.packages ?? []))
    ? [...needs, 'network']
    : needs;
}

function commandTexts(task: Task, steps: readonly SetupStep[]): string[] {
  const commands = [
    ...steps.filter((s) => ['execute', 'command', 'launch'].includes(s.type)).map((s) => s.parameters),
    ...getterConfigs(task).filter((g) => g['command'] !== undefined),
  ];
  return commands.map((c) => {
    // An object in a command's place cannot always be made a text.
    const words = [c['command']].flat().map((w) => (typeof w === 'object' ? '' : String(w)));
    return (/^(\/bin\/)?(ba)?sh$/.test(words[0] ?? '') ? words.slice(2) : words).join(' ');
  });
}
