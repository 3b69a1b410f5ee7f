import { showsFile } from '../../../runtime/tasks/setup/windows.js';
import type { SetupStep, Task } from '../../../runtime/tasks/types.js';

/** What a task's config leaves in front, as its file says it; undefined where it leaves no window. */
export interface Expected {
  readonly what: string;
  readonly shownBy: (title: string) => boolean;
}

/** A terminal is called as its prompt says. */
const PROMPT = /^\w+@|Terminal/;
/** Words in the titles of what task files start, by the first word of the command. */
const PROGRAMS: Readonly<Record<string, RegExp>> = {
  'google-chrome': /Chrom/,
  chromium: /Chrom/,
  gimp: /GIMP|GNU Image/,
  vlc: /VLC/,
  thunderbird: /Thunderbird/,
  // Impress begins with a dialog of its own.
  libreoffice: /LibreOffice|Select a Template/,
  soffice: /LibreOffice/,
  nautilus: /./,
  'gnome-terminal': PROMPT,
  code: /Visual Studio Code/,
  gedit: /gedit/,
  eog: /./,
  evince: /./,
};

/** The last step that opens a window or brings one to the front decides. */
export function expectedInFront(task: Pick<Task, 'config'>): Expected | undefined {
  for (const step of [...task.config].reverse()) {
    if (closes(step)) return undefined;
    const found = expectedOf(step);
    if (found) return found;
  }
  return undefined;
}

const TERMINAL: Expected = { what: 'Terminal', shownBy: (title) => PROMPT.test(title) };

function expectedOf({ type, parameters: p }: SetupStep): Expected | undefined {
  if (type === 'execute' && OPENS_TERMINAL.test([p['command']].flat().join(' '))) return TERMINAL;
  if (type === 'open') {
    const name = String(p['path']).replace(/\/+$/, '').split('/').at(-1)!;
    return { what: name, shownBy: (title) => showsFile(title, name) };
  }
  if (type === 'activate_window') {
    const name = String(p['window_name']).replace('Google Chrome', 'Chromium');
    if (name === TERMINAL.what) return TERMINAL;
    return { what: name, shownBy: (title) => title.toLowerCase().includes(name.toLowerCase()) };
  }
  if (type === 'chrome_open_tabs') return { what: 'the browser', shownBy: (title) => /Chrom/.test(title) };
  if (type !== 'launch') return undefined;
  const words = [p['command']].flat().join(' ').trim().split(/\s+/),
    program = words.map((w) => w.split('/').at(-1)!).find((w) => Object.hasOwn(PROGRAMS, w));
  return program === undefined ? undefined : { what: program, shownBy: (title) => PROGRAMS[program]!.test(title) };
}

const OPENS_TERMINAL = /\bgnome-terminal\b|hotkey\(.?'ctrl', *'alt', *'t'/;

const closes = ({ type, parameters: p }: SetupStep): boolean =>
  type === 'close_window' || (type === 'execute' && /\b(pkill|killall)\b/.test(JSON.stringify(p['command'] ?? '')));
