import { join } from 'node:path';
import { readForeign } from '../files/foreignFile.js';
import { shippedFolder } from '../files/shippedFolder.js';
import type { TaskContext } from './context.js';

/**
 * Task files call `python` and pyautogui (108 of 197 OSWorld files); Debian has neither. Where the image has python3
 * and xdotool, commands that name them get this stand-in: `python` means python3, and a small module `pyautogui` drives
 * xdotool.
 */
export const mentionsPython = (text: string): boolean => /\bpython\b/.test(text);
export const mentionsPyautogui = (text: string): boolean => /\bpyautogui\b/.test(text);

/** Temporary: gone with the next reset. */
const FOLDER = '/tmp/.dart-studio-python';

/** The module, which the image osworld has in its Python. */
const MODULE = join('osworld', 'overlay', 'usr', 'lib', 'python3', 'dist-packages', 'pyautogui.py');
function standIn(): Promise<Buffer> {
  const images = shippedFolder(
    { from: import.meta.url, name: 'images', holds: MODULE, inSources: join('..', 'cluster', 'images') },
    'desktop.image',
    'The files of desktop images',
  );
  return readForeign(join(images, MODULE), 1 << 20);
}

/** The environment that makes the module importable; puts it there on first use. */
export async function pyautoguiEnv(ctx: TaskContext): Promise<Record<string, string>> {
  const mark = ctx.stateOf.get('pyautogui');
  if (mark === undefined) {
    ctx.stateOf.set('pyautogui', true);
    await ctx.desktop.writeFile(`${FOLDER}/pyautogui.py`, await standIn());
  }
  return { PYTHONPATH: FOLDER, PYTHONDONTWRITEBYTECODE: '1' };
}

/** The same command where `python` may be missing: in shell text a function, else a shell that chooses. */
export function withPython(argv: readonly string[]): string[] {
  const [program, flag, text, ...rest] = argv;
  if (program === 'python')
    return [
      '/bin/sh',
      '-c',
      'command -v python >/dev/null && exec python "$@"; exec python3 "$@"',
      'python',
      ...argv.slice(1),
    ];
  if (flag === '-c' && text !== undefined && /^(\/bin\/)?(ba)?sh$/.test(program ?? ''))
    return [program!, flag, `command -v python >/dev/null || python() { python3 "$@"; }\n${text}`, ...rest];
  return [...argv];
}
