import type { Template } from '../kit.js';
import { fileIs, geometry, judgedBy, pickSome, place, setup } from '../kit.js';
import type { Move } from '../moves.js';
import { button, clickBox, enterText, finish, key, type } from '../moves.js';
import { asking, otherChoices, others } from '../siblings.js';
import { buttonRow, dialog, dialogGave } from './dialogs.js';
import { carry, filesHeld, fileTree, folderPlan, icon, movedInto } from './files.js';
import { field, formArgs } from './forms.js';
import { inside, rightHalf, terminalAndNote } from './mixed.js';
import { DOCUMENTS, editor, editorLook, editorTitle, NO_EDITOR, NOTE_SIZE } from './notes.js';
import { bookIs, bookPlan, cell, wordedCells } from './sheet.js';
import { homeHas, SHELL_MS, terminal, terminalFiles } from './terminal.js';

/**
 * Kin of held-out templates: deeds that those are made of, in another number, order or application and in other words
 * (runtime/tasks/README.md#splits). Some say the same in one of several ways, so that words are learned and not whole
 * sentences.
 */
/** Answers to a question about unsaved work, and how people say them. */
const ANSWERS = [
  { button: "Don't Save", say: ['Leave without saving.', 'Close it without saving.'] },
  { button: 'Save', say: ['Save it and leave.', 'Save, then close it.'] },
  { button: 'Cancel', say: ['Do not leave yet.', 'Stay here after all.'] },
] as const;

export const kinTemplates: readonly Template[] = [
  {
    name: 'press-four',
    apps: ['yad'],
    steps: 4,
    build(r, screen) {
      const all = pickSome(r, [...r.words.items, ...r.words.actions], 12),
        rows = [0, 3, 6, 9].map((from) => all.slice(from, from + 3)),
        want = rows.map(() => r.int(3)),
        names = rows.map((labels, k) => labels[want[k]!]!),
        way = r.int(2);
      const say = (words: readonly string[]): string => {
        const [a, b, c, d] = words.map((w) => `"${w}"`);
        return way === 0
          ? `Windows follow each other: press ${a}, ${b}, ${c} and ${d}.`
          : `Click ${a}, then ${b}, ${c} and ${d}, each in its own window.`;
      };
      return {
        ...asking(
          (words) => [say(words), ...words.map((w, k) => dialogGave(`d${k}`, '', 10 + rows[k]!.indexOf(w)))],
          names,
          otherChoices(rows, names),
        ),
        config: setup(r, {
          start: [
            {
              command: rows
                .map((labels, k) => dialog(`d${k}`, buttonRow(r, screen, `Part ${k + 1}`, labels)))
                .join('; '),
            },
          ],
        }),
        solve: [...names.map((w) => button(w)), finish],
        miss: [...names.slice(0, 3).map((w) => button(w)), button(rows[3]![(want[3]! + 1) % 3]!), finish],
      };
    },
  },
  {
    name: 'press-unsaved',
    apps: ['yad'],
    steps: 1,
    build(r, screen) {
      const at = r.int(ANSWERS.length),
        labels = r.shuffle(ANSWERS.map((x) => x.button)),
        wanted = ANSWERS[at]!,
        other = ANSWERS[(at + 1 + r.int(2)) % 3]!;
      const args = [
        `--title=${r.pick(r.words.titles)}`,
        `--geometry=${geometry(place(r, screen, 400, 96))}`,
        `--text=${r.pick(r.words.items)} has changed.`,
        '--borders=8',
        '--buttons-layout=center',
        ...labels.map((l, i) => `--button=${l}:${10 + i}`),
      ];
      const way = r.int(2);
      return {
        ...asking(
          (k) => [ANSWERS[k]!.say[way]!, dialogGave('a', '', 10 + labels.indexOf(ANSWERS[k]!.button))],
          at,
          others(ANSWERS.length, at),
        ),
        config: setup(r, { start: [{ command: dialog('a', args) }] }),
        solve: [button(wanted.button), finish],
        miss: [button(other.button), finish],
      };
    },
  },
  {
    name: 'form-register',
    apps: ['yad'],
    steps: 5,
    build(r, screen) {
      const [first, second] = pickSome(r, r.words.fields, 2),
        [a, b] = pickSome(r, r.words.texts, 2);
      const args = formArgs(r, screen, 'Register', { width: 320, height: 2 * 39 + 60 }, [first, second]);
      const fill = (x: string, y: string): Move[] => [field(0), type(x), field(1), type(y), button('OK'), finish],
        way = r.int(2);
      return {
        ...asking(
          ([x, y]) => [
            way === 0
              ? `Sign up with the ${first} "${x}" and the ${second} "${y}".`
              : `Register with ${first} "${x}" and ${second} "${y}".`,
            dialogGave('a', `${x}|${y}|`, 0),
          ],
          [a, b] as const,
          [[b, a] as const],
        ),
        config: setup(r, { start: [{ command: dialog('a', args) }] }),
        solve: fill(a, b),
        miss: fill(b, a),
      };
    },
  },
  {
    name: 'note-quit',
    apps: ['mousepad'],
    steps: 3,
    build(r, screen) {
      const word = r.pick(r.words.texts),
        path = `${DOCUMENTS}/${r.pick(r.words.items)}`;
      return {
        instruction: r.pick([
          `Write "${word}" into the note, save it and quit the editor.`,
          `Write "${word}", save that, then quit the editor.`,
        ]),
        config: setup(r, {
          look: editorLook(place(r, screen, NOTE_SIZE.width, NOTE_SIZE.height)),
          files: { [path]: '' },
          start: [{ command: editor(path) }],
        }),
        evaluator: judgedBy(fileIs(path, word), NO_EDITOR),
        solve: [type(word), key('ctrl+s'), key('ctrl+q'), finish],
        miss: [type(word), key('ctrl+s'), finish],
      };
    },
  },
  {
    name: 'file-cut',
    apps: ['pcmanfm'],
    steps: 4,
    build(r, screen) {
      const [box, ...files] = pickSome(r, r.words.items, 4),
        moved = files[r.int(3)]!;
      return {
        ...asking(
          (file) => [`Cut the file "${file}" and paste it into the folder "${box}".`, movedInto(box, file, files)],
          moved,
          files.filter((file) => file !== moved),
        ),
        config: setup(r, folderPlan(r, screen, [box], files)),
        solve: carry(moved, box, files, 'ctrl+x'),
        miss: carry(moved, box, files, 'ctrl+c'),
      };
    },
  },
  {
    name: 'file-name',
    apps: ['pcmanfm'],
    steps: 3,
    build(r, screen) {
      const [box, ...files] = pickSome(r, r.words.items, 5),
        fresh = r.pick(r.words.items.filter((x) => x !== box && !files.includes(x))),
        i = r.int(4),
        old = files[i]!;
      const name = (file: string): Move[] => [icon(file, [box], files), key('f2'), enterText(fresh), finish],
        way = r.int(2);
      return {
        ...asking(
          (file) => [
            way === 0
              ? `Give the file "${file}" the new name "${fresh}".`
              : `Change the name of the file "${file}" to "${fresh}".`,
            fileTree([`${box}/`, ...filesHeld(files.filter((f) => f !== file)), `${fresh}:${file.toLowerCase()}`]),
          ],
          old,
          files.filter((file) => file !== old),
        ),
        config: setup(r, folderPlan(r, screen, [box], files)),
        solve: name(old),
        miss: name(files[(i + 1) % 4]!),
      };
    },
  },
  {
    name: 'cell-replace',
    apps: ['gnumeric'],
    steps: 3,
    build(r, screen) {
      const { names, words, cells } = wordedCells(r),
        fresh = r.pick(r.words.items.filter((w) => !words.includes(w))),
        i = r.int(4);
      const put = (at: string): Move[] => [cell(at), enterText(fresh), key('ctrl+s'), finish],
        way = r.int(2);
      return {
        ...asking(
          (k) => [
            way === 0
              ? `Replace the content "${words[k]!}" of a cell by "${fresh}" and save.`
              : `Write "${fresh}" over the cell with "${words[k]!}", then save.`,
            bookIs({ ...cells, [names[k]!]: fresh }),
          ],
          i,
          others(4, i),
        ),
        config: setup(r, bookPlan(r, screen, cells)),
        solve: put(names[i]!),
        miss: put(names[(i + 1) % 4]!),
      };
    },
  },
  {
    name: 'term-four',
    apps: ['xterm'],
    steps: 4,
    build(r, screen) {
      const [made, gone] = pickSome(r, r.words.items, 2),
        fresh = r.pick(r.words.texts),
        lines = [...r.shuffle([`mkdir ${made}`, `rm ${gone}`, `touch ${fresh}`]), 'exit'],
        [a, b, c, d] = lines.map((l) => `"${l}"`);
      return {
        instruction: r.pick([
          `In the terminal run ${a}, ${b}, ${c} and ${d}.`,
          `Type four lines into the terminal: ${a}, then ${b}, then ${c}, then ${d}.`,
        ]),
        config: setup(r, {
          files: { ...terminalFiles, [`/home/user/${gone}`]: 'x' },
          start: [terminal(r, screen)],
        }),
        evaluator: judgedBy(homeHas([made, fresh, gone], { folders: [made], files: [fresh] }, 0)),
        solve: [...lines.map(enterText), finish],
        miss: [...lines.slice(0, 2).map(enterText), enterText('exit'), finish],
      };
    },
  },
  {
    name: 'term-note',
    apps: ['mousepad', 'xterm'],
    steps: 5,
    build(r, screen) {
      const [file, made] = pickSome(r, r.words.items, 2),
        word = r.pick(r.words.texts),
        path = `${DOCUMENTS}/${file}`,
        line = `touch ${made}`,
        note = rightHalf(r, screen);
      const both = (last: readonly Move[]): Move[] => [
        clickBox(inside('Terminal')),
        enterText(line),
        clickBox(inside(editorTitle(file))),
        type(word),
        ...last,
        finish,
      ];
      return {
        instruction: r.pick([
          `Run "${line}" in the terminal; then write "${word}" into the note and save it.`,
          `First run "${line}" in the terminal, after it write "${word}" into the note and save that.`,
        ]),
        config: setup(r, terminalAndNote(r, screen, file, note)),
        evaluator: judgedBy(fileIs(path, word), {
          withinMs: SHELL_MS,
          command: `cd; ls -dp ${made}`,
          prints: `${made}\n`,
        }),
        solve: both([key('ctrl+s')]),
        miss: both([]),
      };
    },
  },
];
