import type { Size } from '../../../../domain/index.js';
import type { Box } from '../box.js';
import type { Scene, SetupPlan, Template } from '../kit.js';
import { COMPACT, fileIs, judgedBy, pickSome, place, setup } from '../kit.js';
import type { Move, Where } from '../moves.js';
import { clickBox, doubleClickBox, enterText, finish, key, type } from '../moves.js';
import { asking, others } from '../siblings.js';
import { numbers } from './calculator.js';
import { FOLDER, fileManager, filesConfig, iconBox } from './files.js';
import { DOCUMENTS, editor, editorLook, editorTitle } from './notes.js';
import { SHELL_MS, terminal, terminalFiles } from './terminal.js';

/** Tasks over two applications. */

/** The middle of an editor's or terminal's window. */
export const inside =
  (title: string): Where =>
  async (s) => {
    const w = await s.window({ title });
    return { x: w.x + 20, y: w.y + 60, width: w.width - 40, height: w.height - 80 };
  };

/** A place for a note in the right half of the screen. */
export function rightHalf(r: Scene, screen: Size): Box {
  const half = Math.floor(screen.width / 2);
  return place(r, screen, 280, 180, { x: half, width: half });
}
/** A terminal in the left half of the screen, and an empty note at this place. */
export function terminalAndNote(r: Scene, screen: Size, file: string, note: Box): SetupPlan {
  const path = `${DOCUMENTS}/${file}`,
    half = Math.floor(screen.width / 2),
    look = editorLook(note);
  return {
    look: { ...look, css: `${look.css}menubar * { font-size: 8pt; padding: 1px 2px; }\n` },
    files: { ...terminalFiles, [path]: '' },
    start: [
      terminal(r, screen, { columns: 26, region: { width: half } }),
      { command: editor(path), then: [`wmctrl -r ${file} -e 0,${note.x},${note.y},${note.width},${note.height}`] },
    ],
  };
}

export const mixedTemplates: readonly Template[] = [
  {
    name: 'calc-to-note',
    apps: ['galculator', 'mousepad'],
    steps: 5,
    build(r, screen) {
      const [a, b] = numbers(r),
        sum = `${a}+${b}`,
        file = r.pick(r.words.items),
        path = `${DOCUMENTS}/${file}`;
      const calc = place(r, screen, 326, 291, { width: 336 }),
        note = place(r, screen, 280, 150, { x: 340, width: screen.width - 340 });
      const look = editorLook(note, COMPACT);
      return {
        instruction: `Calculate "${sum}", copy the result, paste it into the note "${file}" and save that.`,
        config: setup(r, {
          look: { ...look, css: `${look.css}menubar * { font-size: 8pt; padding: 1px 2px; }\n` },
          files: { [path]: '' },
          start: [
            {
              command: editor(path),
              then: [`wmctrl -r ${file} -e 0,${note.x},${note.y},${note.width},${note.height}`],
            },
            { command: 'exec galculator', then: [`wmctrl -x -r galculator.Galculator -e 0,${calc.x},${calc.y},-1,-1`] },
          ],
        }),
        evaluator: judgedBy(fileIs(path, String(a + b))),
        solve: [
          enterText(sum),
          key('ctrl+c'),
          clickBox(inside(editorTitle(file))),
          key('ctrl+v'),
          key('ctrl+s'),
          finish,
        ],
        miss: [clickBox(inside(editorTitle(file))), type(sum), key('ctrl+s'), finish],
      };
    },
  },
  {
    name: 'file-edit',
    apps: ['pcmanfm', 'mousepad'],
    steps: 4,
    build(r, screen) {
      const files = pickSome(r, r.words.items, 4),
        i = r.int(4),
        [word] = pickSome(r, r.words.texts, 1),
        want = files[i]!,
        other = files[(i + 1) % 4]!;
      const manager = fileManager(r, screen),
        edit = (f: string): Move[] => [
          doubleClickBox(iconBox(f, [], files)),
          key('ctrl+a'),
          type(word),
          key('ctrl+s'),
          finish,
        ];
      return {
        ...asking(
          (k) => [
            `Open the file "${files[k]!}", replace its text by "${word}" and save it.`,
            fileIs(`${FOLDER}/${files[k]!}`, word),
            fileIs(`${FOLDER}/${files[(k + 1) % 4]!}`, files[(k + 1) % 4]!.toLowerCase()),
          ],
          i,
          others(4, i),
        ),
        config: setup(r, {
          look: editorLook(place(r, screen, 440, 230)),
          start: [{ ...manager, command: `GSETTINGS_BACKEND=keyfile ${manager.command.replace(/^exec /, '')}` }],
          files: {
            ...filesConfig,
            '/home/user/.config/mimeapps.list':
              '[Default Applications]\ntext/plain=org.xfce.mousepad.desktop\n[Added Associations]\ntext/plain=org.xfce.mousepad.desktop;\n',
            ...Object.fromEntries(files.map((f) => [`${FOLDER}/${f}`, f.toLowerCase()])),
          },
        }),
        solve: edit(want),
        miss: edit(other),
      };
    },
  },
  {
    name: 'note-to-term',
    apps: ['mousepad', 'xterm'],
    steps: 5,
    heldout: true,
    build(r, screen) {
      const [file, made] = pickSome(r, r.words.items, 2),
        word = r.pick(r.words.texts),
        path = `${DOCUMENTS}/${file}`,
        line = `mkdir ${made}`;
      return {
        instruction: `Write "${word}" into the note and save it; then run "${line}" in the terminal.`,
        config: setup(r, terminalAndNote(r, screen, file, rightHalf(r, screen))),
        evaluator: judgedBy(fileIs(path, word), {
          withinMs: SHELL_MS,
          command: 'cd; ls -d [A-Z]*/',
          prints: ['Desktop', 'Documents', 'Downloads', made]
            .sort()
            .map((d) => `${d}/\n`)
            .join(''),
        }),
        solve: [
          clickBox(inside(editorTitle(file))),
          type(word),
          key('ctrl+s'),
          clickBox(inside('Terminal')),
          enterText(line),
          finish,
        ],
        miss: [clickBox(inside(editorTitle(file))), type(word), clickBox(inside('Terminal')), enterText(line), finish],
      };
    },
  },
];
