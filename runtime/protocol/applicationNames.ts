/** Names of the applications that task files are about. Pure. */

/** An application; '' stands for several of them, undefined for none. */
export type TaskGroup = string | undefined;

/** OSWorld's folders of task files, which `dart-studio evaluate` lists results by. */
const FOLDERS: Readonly<Record<string, string>> = {
  chrome: 'Chrome',
  gimp: 'GIMP',
  libreoffice_calc: 'LibreOffice Calc',
  libreoffice_impress: 'LibreOffice Impress',
  libreoffice_writer: 'LibreOffice Writer',
  multi_apps: '',
  os: 'os',
  thunderbird: 'Thunderbird',
  vlc: 'VLC',
  vs_code: 'VS Code',
};
/** Spellings of task files, in lower case with single spaces; runtime/tasks/needs.ts knows the same ones. */
const SPELLINGS: readonly (readonly [RegExp, string])[] = [
  [/^((libre ?office )?calc|excel)$/, 'LibreOffice Calc'],
  [/^((libre ?office )?impress|powerpoint)$/, 'LibreOffice Impress'],
  [/^((libre ?office )?writer|word)$/, 'LibreOffice Writer'],
  [/^libre ?office$/, 'LibreOffice'],
  [/^((google )?chrome|chromium|browser)$/, 'Chrome'],
  [/^(vs ?code|visual studio code|code)$/, 'VS Code'],
  [/^gimp$/, 'GIMP'],
  [/^(vlc|(ubuntu )?media player)$/, 'VLC'],
  [/^thunderbird$/, 'Thunderbird'],
  [/^(os|ubuntu|operating system)$/, 'os'],
  [/^((gnome )?terminal|xterm)$/, 'terminal'],
  [/^(files?|file ?manager|nautilus|pcmanfm)$/, 'files'],
  [/^pdf( viewer)?$/, 'pdf'],
  [/^image( viewer)?$/, 'image'],
];

/**
 * An application by its name; what has none is `os`, `terminal`, `files`, `pdf` or `image`, for which the views have
 * words. One that nobody here knows is called as in the task file, however it is spaced there.
 */
export function applicationName(inTaskFile: string): string {
  const name = inTaskFile
    .toLowerCase()
    .replace(/[\s_-]+/g, ' ')
    .trim();
  return SPELLINGS.find(([r]) => r.test(name))?.[1] ?? name;
}
/** Each once. */
export const applicationNames = (apps: readonly string[]): readonly string[] => [
  ...new Set(apps.map(applicationName).filter((name) => name !== '')),
];

/** The heading of a task: `domain`, the folder of its file, where that is one of OSWorld's, else its application. */
export function taskGroupOf(t: { readonly domain?: string | undefined; readonly apps?: readonly string[] }): TaskGroup {
  if (t.domain !== undefined && Object.hasOwn(FOLDERS, t.domain)) return FOLDERS[t.domain];
  const names = applicationNames(t.apps ?? []);
  return names.length > 1 ? '' : names[0];
}
