import type { Box } from '../box.js';
import type { Template } from '../kit.js';
import { fileIs, judgedBy, pickSome, place, setup } from '../kit.js';
import type { Move } from '../moves.js';
import { button, click, clickBox, enterText, finish, key, type } from '../moves.js';
import { dialog, dialogGave } from './dialogs.js';
import { fileTree, filesHeld, folderPlan, openIcon, shows } from './files.js';
import { field, formArgs } from './forms.js';
import { DOCUMENTS, NOTE_SIZE, editor, editorLook } from './notes.js';
import { bookIs, bookPlan, cell, cellNames } from './sheet.js';
import { SHELL_MS, terminal, terminalFiles } from './terminal.js';
import { cards, stateOf, titleButton, titlesAre } from './windows.js';

/**
 * Held-out templates, one of each application, written by somebody who had not seen the training templates that were
 * added with the older held-out ones in hand (kin, counterparts). Nothing is to be added to training for their sake.
 */
export const freshTemplates: readonly Template[] = [
  {
    name: 'form-fill-then-tick',
    apps: ['yad'],
    steps: 4,
    heldout: 'fresh',
    build(r, screen) {
      const labels = pickSome(r, r.words.fields, 2),
        options = pickSome(r, r.words.items, 3),
        word = r.pick(r.words.texts),
        i = r.int(2),
        k = r.int(3),
        wrong = (k + 1 + r.int(2)) % 3;
      const args = formArgs(r, screen, 'Entry', { width: 300, height: 2 * 39 + 3 * 32 + 62 }, [
        ...labels,
        ...options.map((l) => `${l}:CHK`),
      ]);
      const values = [
        ...labels.map((_, n) => (n === i ? `${word}|` : '|')),
        ...options.map((_, n) => (n === k ? 'TRUE|' : 'FALSE|')),
      ].join('');
      const go = (n: number): Move[] => [
        field(i),
        type(word),
        click({ role: 'check box', name: options[n]! }),
        button('OK'),
        finish,
      ];
      return {
        instruction: `Fill "${labels[i]!}" with "${word}", tick "${options[k]!}" and press OK.`,
        config: setup(r, { start: [{ command: dialog('a', args) }] }),
        evaluator: judgedBy(dialogGave('a', values, 0)),
        solve: go(k),
        miss: go(wrong),
      };
    },
  },
  {
    name: 'note-line-on-top',
    apps: ['mousepad'],
    steps: 2,
    heldout: 'fresh',
    build(r, screen) {
      const [old, word] = pickSome(r, r.words.texts, 2),
        [file, first] = pickSome(r, r.words.items, 2),
        path = `${DOCUMENTS}/${file}`,
        lines = `${first}\n${old}\n`;
      return {
        instruction: `Put "${word}" on a new line above the text of the note, and save the note.`,
        config: setup(r, {
          look: editorLook(place(r, screen, NOTE_SIZE.width, NOTE_SIZE.height)),
          files: { [path]: lines },
          start: [{ command: editor(path) }],
        }),
        evaluator: judgedBy(fileIs(path, `${word}\n${lines}`)),
        // The editor opens a file with the caret before its first letter.
        solve: [enterText(word), key('ctrl+s'), finish],
        miss: [type(word), key('ctrl+s'), finish],
      };
    },
  },
  {
    name: 'folder-open-then-new',
    apps: ['pcmanfm'],
    steps: 3,
    heldout: 'fresh',
    build(r, screen) {
      const names = pickSome(r, r.words.items, 6),
        folders = names.slice(0, 3),
        files = names.slice(3, 5),
        fresh = names[5]!,
        outer = r.pick(folders);
      return {
        instruction: `Open the folder "${outer}" and create a new folder "${fresh}" inside it.`,
        config: setup(r, folderPlan(r, screen, folders, files)),
        evaluator: judgedBy(
          fileTree([...folders.map((f) => `${f}/`), `${outer}/${fresh}/`, ...filesHeld(files)]),
          shows(outer),
        ),
        solve: [openIcon(outer, folders, files), key('ctrl+shift+n'), enterText(fresh), finish],
        miss: [key('ctrl+shift+n'), enterText(fresh), finish],
      };
    },
  },
  {
    name: 'term-titled-touch-exit',
    apps: ['xterm'],
    steps: 3,
    heldout: 'fresh',
    build(r, screen) {
      const [one, two] = pickSome(r, r.words.items, 2),
        file = r.pick(r.words.texts),
        line = `touch ${file}`,
        half = Math.floor(screen.width / 2);
      const at = (title: string, onLeft: boolean) => {
        const region: Partial<Box> = onLeft ? { width: half } : { x: half, width: half };
        return terminal(r, screen, { title, columns: 25, region, cwd: `/home/user/${title}` });
      };
      const left = r.int(2) === 0,
        there = clickBox((s) => s.window({ title: one }));
      return {
        instruction: `Use the terminal titled "${one}": run "${line}" there, and then "exit".`,
        config: setup(r, {
          files: terminalFiles,
          folders: [`/home/user/${one}`, `/home/user/${two}`],
          // The other one comes last, so it has the keyboard.
          start: [at(one, left), at(two, !left)],
        }),
        evaluator: judgedBy(
          { withinMs: SHELL_MS, command: 'cd; ls -dp */*', prints: `${one}/${file}\n` },
          { ...titlesAre([two]), withinMs: SHELL_MS },
        ),
        solve: [there, enterText(line), enterText('exit'), finish],
        miss: [there, enterText(line), type('exit'), finish],
      };
    },
  },
  {
    name: 'cell-empty-then-fill',
    apps: ['gnumeric'],
    steps: 5,
    heldout: 'fresh',
    build(r, screen) {
      const names = cellNames.slice(1),
        filled = pickSome(r, names, 3),
        [gone, other, third] = filled,
        [a, b, c, fresh] = pickSome(r, r.words.items, 4);
      // A column without words is chosen: the program completes typed text from the words above and below.
      const to = r.pick(names.filter((n) => !filled.some((f) => f[0] === n[0])));
      const go = (emptied: string): Move[] => [
        cell(emptied),
        key('delete'),
        cell(to),
        enterText(fresh),
        key('ctrl+s'),
        finish,
      ];
      return {
        instruction: `Clear cell "${gone}" and put "${fresh}" into cell "${to}", then save the sheet.`,
        config: setup(r, bookPlan(r, screen, { [gone]: a, [other]: b, [third]: c })),
        evaluator: judgedBy(bookIs({ [other]: b, [third]: c, [to]: fresh })),
        solve: go(gone),
        miss: go(other),
      };
    },
  },
  {
    name: 'window-minimize-one-close-one',
    apps: ['jwm'],
    steps: 2,
    heldout: 'fresh',
    build(r, screen) {
      const titles = pickSome(r, r.words.items, 3),
        [small, shut, kept] = pickSome(r, titles, 3);
      const go = (hidden: string, closed: string): Move[] => [
        clickBox(titleButton(hidden, 2)),
        clickBox(titleButton(closed, 0)),
        finish,
      ];
      return {
        instruction: `Minimize the window "${small}" and close the window "${shut}".`,
        config: setup(r, { start: cards(r, screen, titles) }),
        evaluator: judgedBy(titlesAre([small, kept]), {
          command: [small, kept].map((t) => `${stateOf(t)} | grep -c HIDDEN`).join('; '),
          prints: '1\n0\n',
        }),
        solve: go(small, shut),
        miss: go(shut, small),
      };
    },
  },
];
