import type { Size } from '../../../../domain/index.js';
import type { Check, Scene, SetupPlan, Template } from '../kit.js';
import type { Box } from '../box.js';
import { fileIs, judgedBy, pickSome, place, setup } from '../kit.js';
import { clickBox, enterText, finish, type } from '../moves.js';
import { asking } from '../siblings.js';

/** The terminal, xterm with bash. */

const CHAR = { width: 11, height: 23, columns: 36, rows: 8 };
export function terminal(
  r: Scene,
  screen: Size,
  o: { readonly cwd?: string; readonly title?: string; readonly columns?: number; readonly region?: Partial<Box> } = {},
): SetupPlan['start'][number] {
  const columns = o.columns ?? CHAR.columns,
    at = place(r, screen, CHAR.width * columns + 4, CHAR.height * CHAR.rows + 4, o.region);
  return {
    command: `cd ${o.cwd ?? '/home/user'}; exec xterm ${r.dress.terminal === undefined ? '' : `${r.dress.terminal} `}-T ${o.title ?? 'Terminal'} -fa 'DejaVu Sans Mono:bold' -fs 14 -geometry ${columns}x${CHAR.rows}+${at.x}+${at.y}`,
  };
}
/** How long a command line may take to get to the shell and be done. */
export const SHELL_MS = 200;
/** Which of these names lie in the home folder, as folders or files, and how many terminals are open. */
export const homeHas = (
  asked: readonly string[],
  has: { readonly folders: readonly string[]; readonly files: readonly string[] },
  terminals: number,
): Check => ({
  withinMs: SHELL_MS,
  command: `cd; LC_ALL=C ls -dp ${asked.join(' ')} 2> /dev/null; wmctrl -lx | grep -ci xterm`,
  prints: `${[...has.folders, ...has.files]
    .sort()
    .map((x) => (has.folders.includes(x) ? `${x}/\n` : `${x}\n`))
    .join('')}${terminals}\n`,
});
/** A short prompt. */
export const terminalFiles = { '/home/user/.bashrc': 'PS1="> "\n' };

export const terminalTemplates: readonly Template[] = [
  {
    name: 'term-touch',
    apps: ['xterm'],
    steps: 1,
    build(r, screen) {
      const file = r.pick([...r.words.items, ...r.words.texts]),
        line = `touch ${file}`;
      return {
        instruction: `Run "${line}" in the terminal.`,
        config: setup(r, { files: terminalFiles, start: [terminal(r, screen)] }),
        evaluator: judgedBy({
          withinMs: SHELL_MS,
          command: `cd; find . -maxdepth 1 -type f -name '[A-Za-z]*' -printf '%P\\n'`,
          prints: `${file}\n`,
        }),
        solve: [enterText(line), finish],
        miss: [type(line), finish],
      };
    },
  },
  {
    name: 'term-write',
    apps: ['xterm'],
    steps: 2,
    build(r, screen) {
      const [word, file] = [r.pick(r.words.texts), r.pick(r.words.items)],
        make = `mkdir ${file}`,
        write = `echo ${word} > ${file}/note`;
      return {
        instruction: `In the terminal run "${make}" and after it "${write}".`,
        config: setup(r, { files: terminalFiles, start: [terminal(r, screen)] }),
        evaluator: judgedBy({ ...fileIs(`/home/user/${file}/note`, `${word}\n`), withinMs: SHELL_MS }),
        solve: [enterText(make), enterText(write), finish],
        miss: [enterText(write), finish],
      };
    },
  },
  {
    name: 'term-exit',
    apps: ['xterm'],
    steps: 1,
    build(r, screen) {
      return {
        instruction: 'Type "exit" in the terminal to close it.',
        config: setup(r, { files: terminalFiles, start: [terminal(r, screen)] }),
        evaluator: judgedBy({ withinMs: SHELL_MS, command: 'wmctrl -lx | grep -ci xterm', prints: '0\n' }),
        solve: [enterText('exit'), finish],
        miss: [type('exit'), finish],
      };
    },
  },
  {
    name: 'term-which',
    apps: ['xterm'],
    steps: 2,
    build(r, screen) {
      const [one, two] = pickSome(r, r.words.items, 2),
        file = r.pick(r.words.texts),
        line = `touch ${file}`,
        half = Math.floor(screen.width / 2);
      const at = (title: string, region: Partial<Box>) =>
        terminal(r, screen, { title, columns: 25, region, cwd: `/home/user/${title}` });
      // The other window was opened last, so it has the keyboard.
      const [left, right] = r.int(2) === 0 ? [one, two] : [two, one],
        start = [at(left, { width: half }), at(right, { x: half, width: half })];
      return {
        ...asking(
          (title) => [
            `Two terminals are open. Run "${line}" in the one titled "${title}".`,
            { withinMs: SHELL_MS, command: 'cd; ls -d */*', prints: `${title}/${file}\n` },
          ],
          one,
          [two],
        ),
        config: setup(r, {
          files: terminalFiles,
          folders: [`/home/user/${one}`, `/home/user/${two}`],
          start: left === one ? start : [start[1]!, start[0]!],
        }),
        solve: [clickBox((s) => s.window({ title: one })), enterText(line), finish],
        miss: [enterText(line), finish],
      };
    },
  },
  {
    name: 'term-clean',
    apps: ['xterm'],
    steps: 3,
    heldout: true,
    build(r, screen) {
      const [dir, gone, kept] = pickSome(r, r.words.items, 3),
        cd = `cd ${dir}`,
        rm = `rm ${gone}`;
      return {
        instruction: `In the terminal run "${cd}", then "${rm}", then "exit".`,
        config: setup(r, {
          files: { ...terminalFiles, [`/home/user/${dir}/${gone}`]: 'x', [`/home/user/${dir}/${kept}`]: 'x' },
          start: [terminal(r, screen)],
        }),
        evaluator: judgedBy({
          withinMs: SHELL_MS,
          command: `ls /home/user/${dir}; wmctrl -lx | grep -ci xterm`,
          prints: `${kept}\n0\n`,
        }),
        solve: [enterText(cd), enterText(rm), enterText('exit'), finish],
        miss: [enterText(rm), enterText('exit'), finish],
      };
    },
  },
];
