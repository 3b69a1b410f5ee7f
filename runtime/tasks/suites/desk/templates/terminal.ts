import type { Random, Size } from '../../../../domain/index.js';
import { ITEMS, TEXTS } from '../lexicon.js';
import type { SetupPlan, Template } from '../kit.js';
import { fileIs, judgedBy, place, setup } from '../kit.js';
import { enterText, finish, type } from '../moves.js';

/** The terminal, xterm with bash. */

const CHAR = { width: 11, height: 23, columns: 36, rows: 8 };
export function terminal(r: Random, screen: Size, cwd = '/home/user'): SetupPlan['start'][number] {
  const at = place(r, screen, CHAR.width * CHAR.columns + 4, CHAR.height * CHAR.rows + 4);
  return { command: `cd ${cwd}; exec xterm -fa 'DejaVu Sans Mono:bold' -fs 14 -geometry ${CHAR.columns}x${CHAR.rows}+${at.x}+${at.y}` };
}
/** A short prompt. */
export const terminalFiles = { '/home/user/.bashrc': 'PS1="> "\n' };

export const terminalTemplates: readonly Template[] = [
  {
    name: 'term-touch', apps: ['xterm'], steps: 1,
    build(r, screen) {
      const file = r.pick([...ITEMS, ...TEXTS]), line = `touch ${file}`;
      return { instruction: `Run "${line}" in the terminal.`, config: setup({ files: terminalFiles, start: [terminal(r, screen)] }),
        evaluator: judgedBy({ command: `cd; find . -maxdepth 1 -type f -name '[A-Za-z]*' -printf '%P\\n'`, prints: `${file}\n` }), solve: [enterText(line), finish], miss: [type(line), finish] };
    },
  },
  {
    name: 'term-write', apps: ['xterm'], steps: 2,
    build(r, screen) {
      const [word, file] = [r.pick(TEXTS), r.pick(ITEMS)], make = `mkdir ${file}`, write = `echo ${word} > ${file}/note`;
      return { instruction: `In the terminal run "${make}" and after it "${write}".`, config: setup({ files: terminalFiles, start: [terminal(r, screen)] }),
        evaluator: judgedBy(fileIs(`/home/user/${file}/note`, `${word}\n`)), solve: [enterText(make), enterText(write), finish], miss: [enterText(write), finish] };
    },
  },
];
