import type { Template } from '../kit.js';
import { fileIs, judgedBy, pickSome, place, setup } from '../kit.js';
import type { Move } from '../moves.js';
import { button, click, enterText, finish, key, type } from '../moves.js';
import { asking, others } from '../siblings.js';
import { dialog, dialogGave } from './dialogs.js';
import { carry, fileTree, filesHeld, folderPlan, icon, upwards } from './files.js';
import { field, formArgs } from './forms.js';
import { DOCUMENTS, editorLook, NO_EDITOR, NOTE_SIZE, WAS_CHANGED, watchedEditor } from './notes.js';
import { bookIs, bookPlan, cell, wordedCells } from './sheet.js';
import { homeHas, terminal, terminalFiles } from './terminal.js';

/**
 * Counterparts of held-out templates: one thing differs from each (copied instead of cut, a cell by its name instead of
 * its content, other numbers of commands), so that the held-out one is the combination that is missing
 * (runtime/tasks/README.md#splits).
 */
export const counterpartTemplates: readonly Template[] = [
  {
    name: 'term-list',
    apps: ['xterm'],
    steps: 4,
    build(r, screen) {
      const [a, b, gone] = pickSome(r, r.words.items, 3),
        [c, d] = pickSome(r, r.words.texts, 2),
        leaves = r.int(2) === 0,
        // Three is the number of the held-out one.
        n = r.pick([2, 4, 5]) - (leaves ? 1 : 0),
        all = [`mkdir ${a}`, `mkdir ${b}`, `touch ${c}`, `touch ${d}`, `rm ${gone}`],
        done = r.shuffle(all).slice(0, n),
        lines = [...done, ...(leaves ? ['exit'] : [])],
        made = (command: string, names: readonly string[]): string[] =>
          names.filter((x) => done.includes(`${command} ${x}`));
      return {
        instruction: `In the terminal run ${lines.map((l) => `"${l}"`).join(', then ')}.`,
        config: setup(r, {
          files: { ...terminalFiles, [`/home/user/${gone}`]: 'x' },
          start: [terminal(r, screen)],
        }),
        evaluator: judgedBy(
          homeHas(
            [a, b, c, d, gone],
            {
              folders: made('mkdir', [a, b]),
              files: [...made('touch', [c, d]), ...(done.includes(`rm ${gone}`) ? [] : [gone])],
            },
            leaves ? 0 : 1,
          ),
        ),
        solve: [...lines.map(enterText), finish],
        miss: [...lines.slice(1).map(enterText), finish],
      };
    },
  },
  {
    name: 'note-clear-quit',
    apps: ['mousepad'],
    steps: 4,
    build(r, screen) {
      const old = pickSome(r, r.words.texts, 2).join('\n'),
        path = `${DOCUMENTS}/${r.pick(r.words.items)}`,
        saves = r.int(2) === 0;
      const leave = (save: boolean): Move[] => [
        key('ctrl+a'),
        key('delete'),
        key('ctrl+q'),
        button(save ? 'Save' : "Don't Save"),
        finish,
      ];
      return {
        instruction: saves
          ? 'Delete all the text of the note, then quit the editor and save.'
          : 'Delete all the text of the note, then quit the editor without saving.',
        config: setup(r, {
          look: editorLook(place(r, screen, NOTE_SIZE.width, NOTE_SIZE.height)),
          files: { [path]: old },
          start: [watchedEditor(path)],
        }),
        evaluator: judgedBy(
          saves ? { command: `test -e ${path} && wc -c < ${path}`, prints: '0\n' } : fileIs(path, old),
          NO_EDITOR,
          WAS_CHANGED,
        ),
        solve: leave(saves),
        // Untouched, it needs no answer.
        miss: saves ? leave(false) : [key('ctrl+q'), finish],
      };
    },
  },
  {
    name: 'file-paste',
    apps: ['pcmanfm'],
    steps: 4,
    build(r, screen) {
      if (r.int(2) === 0) {
        const t = upwards(r, screen);
        return {
          ...asking(
            (file) => [`Copy the file "${file}" and paste it into the folder above this one.`, t.after(t.files, file)],
            t.want,
            t.files.filter((file) => file !== t.want),
          ),
          config: t.config,
          solve: t.take(t.want, 'ctrl+c'),
          miss: t.take(t.want, 'ctrl+x'),
        };
      }
      const [box, ...files] = pickSome(r, r.words.items, 4),
        wanted = files[r.int(3)]!;
      return {
        ...asking(
          (file) => [
            `Copy the file "${file}" and paste it into the folder "${box}".`,
            fileTree([`${box}/`, `${box}/${file}:${file.toLowerCase()}`, ...filesHeld(files)]),
          ],
          wanted,
          files.filter((file) => file !== wanted),
        ),
        config: setup(r, folderPlan(r, screen, [box], files)),
        solve: carry(wanted, box, files, 'ctrl+c'),
        miss: carry(wanted, box, files, 'ctrl+x'),
      };
    },
  },
  {
    name: 'folder-delete',
    apps: ['pcmanfm'],
    steps: 3,
    build(r, screen) {
      const names = pickSome(r, r.words.items, 5),
        folders = names.slice(0, 3),
        files = names.slice(3),
        i = r.int(3);
      const remove = (gone: string): Move[] => [icon(gone, folders, files), key('delete'), key('enter'), finish];
      return {
        ...asking(
          (k) => [
            `Delete the folder "${folders[k]!}" and confirm.`,
            fileTree([...folders.filter((_, n) => n !== k).map((f) => `${f}/`), ...filesHeld(files)]),
          ],
          i,
          others(3, i),
        ),
        config: setup(r, folderPlan(r, screen, folders, files)),
        solve: remove(folders[i]!),
        miss: remove(folders[(i + 1) % 3]!),
      };
    },
  },
  {
    name: 'form-leave',
    apps: ['yad'],
    steps: 1,
    build(r, screen) {
      const title = r.pick(r.words.titles),
        labels = pickSome(r, r.words.fields, 2),
        accepts = r.int(2) === 0;
      const args = formArgs(r, screen, title, { width: 320, height: 2 * 39 + 60 }, labels);
      const [right, wrong] = accepts ? (['OK', 'Cancel'] as const) : (['Cancel', 'OK'] as const);
      return {
        ...asking(
          (by) => [
            `Close the "${title}" form without filling it in, with the ${by} button.`,
            by === 'OK' ? dialogGave('a', '||', 0) : dialogGave('a', '', 1),
          ],
          right,
          [wrong],
        ),
        config: setup(r, { start: [{ command: dialog('a', args) }] }),
        solve: [button(right), finish],
        miss: [button(wrong), finish],
      };
    },
  },
  {
    name: 'form-secret',
    apps: ['yad'],
    steps: 5,
    build(r, screen) {
      const [secret, text] = pickSome(r, r.words.texts, 2),
        [hidden, label] = pickSome(r, r.words.fields, 2);
      const args = formArgs(r, screen, 'Secret', { width: 320, height: 2 * 39 + 60 }, [`${hidden}:H`, label]);
      const fill = (x: string, y: string): Move[] => [
        click({ role: 'password text' }),
        type(x),
        field(0),
        type(y),
        button('OK'),
        finish,
      ];
      return {
        ...asking(
          ([x, y]) => [
            `Enter the ${hidden} "${x}" and the ${label} "${y}", then press OK.`,
            dialogGave('a', `${x}|${y}|`, 0),
          ],
          [secret, text] as const,
          [[text, secret] as const],
        ),
        config: setup(r, { start: [{ command: dialog('a', args) }] }),
        solve: fill(secret, text),
        miss: fill(text, secret),
      };
    },
  },
  {
    name: 'cell-erase',
    apps: ['gnumeric'],
    steps: 3,
    build(r, screen) {
      const { names, cells } = wordedCells(r),
        i = r.int(4);
      const erase = (at: string): Move[] => [cell(at), key('delete'), key('ctrl+s'), finish];
      return {
        ...asking(
          (at) => [
            `Delete the content of cell "${at}" and save.`,
            bookIs(Object.fromEntries(Object.entries(cells).filter(([n]) => n !== at))),
          ],
          names[i]!,
          names.filter((n) => n !== names[i]),
        ),
        config: setup(r, bookPlan(r, screen, cells)),
        solve: erase(names[i]!),
        miss: erase(names[(i + 1) % 4]!),
      };
    },
  },
];
