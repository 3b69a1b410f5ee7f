import type { Check, Look, SetupPlan, Template } from '../kit.js';
import type { Box } from '../box.js';
import { LARGE, OUT, fileIs, judgedBy, pickSome, place, q, setup } from '../kit.js';
import type { Where } from '../moves.js';
import { button, click, clickBox, finish, key, type } from '../moves.js';

/** The text editor, mousepad. */

export const DOCUMENTS = '/home/user/Documents';

/** Mousepad's window place comes from its settings. */
export const editorLook = (at: Box, look: Look = LARGE): Look => ({
  ...look,
  // Dialogs and the longest menu do not fit in 640x400 otherwise.
  css: `${look.css}filechooser *, dialog * { font-size: 11pt; }\ndialog button { min-height: 24px; }\nmenu menuitem { font-size: 11pt; padding: 1px 4px; min-height: 0; }\n`,
  settings:
    `[org/xfce/mousepad/preferences/window]\nremember-position=true\npath-in-title=false\n[org/xfce/mousepad/preferences/view]\nuse-default-monospace-font=false\nfont-name='DejaVu Sans Mono Bold 14'\n` +
    '[org/gtk/settings/file-chooser]\nwindow-size=(560, 280)\nsidebar-width=120\n' +
    `[org/xfce/mousepad/state/window]\nleft=uint32 ${at.x}\ntop=uint32 ${at.y}\nwidth=uint32 ${at.width}\nheight=uint32 ${at.height}\n`,
});
export const editor = (...files: readonly string[]): string =>
  `cd ${DOCUMENTS}; GSETTINGS_BACKEND=keyfile exec mousepad --disable-server ${files.map(q).join(' ')}`;
/** The window title with this file, saved or not. */
export const editorTitle = (name: string): string => `\\*?${name} - Mousepad`;
const note = (name: string): string => `${DOCUMENTS}/${name}`;
export const NOTE_SIZE = { width: 440, height: 230 };
export const NO_EDITOR: Check = { command: 'wmctrl -lx | grep -ci mousepad', prints: '0\n' };
/** The editor as the only window, and what its title says from then on. */
export const watchedEditor = (path: string): SetupPlan['start'][number] => ({
  command: editor(path),
  then: [
    "window=$(xprop -root _NET_CLIENT_LIST | grep -o '0x[0-9a-f]*' | tail -n 1)",
    `(exec xprop -id "$window" -spy WM_NAME > ${OUT}/titles 2>&1 3<&- &)`,
  ],
});
/** The text was changed at some time, saved or not: the title had its star. */
export const WAS_CHANGED: Check = { command: `grep -q '"[*]' ${OUT}/titles && echo changed`, prints: 'changed\n' };
/** The look of editors side by side. */
const SMALL_MENU = '* { font: bold 14pt "DejaVu Sans"; }\nmenubar * { font-size: 9pt; padding: 1px 2px; }\n';
const menu = (name: string) => click({ role: 'menu', name });
const menuItem = (name: string) => click({ role: 'menu item', name });

export const noteTemplates: readonly Template[] = [
  {
    name: 'note-save',
    apps: ['mousepad'],
    steps: 2,
    build(r, screen) {
      const [word] = pickSome(r, r.words.texts, 1),
        file = r.pick(r.words.items);
      return {
        instruction: `Write "${word}" into the open note and save it.`,
        config: setup(r, {
          look: editorLook(place(r, screen, NOTE_SIZE.width, NOTE_SIZE.height)),
          files: { [note(file)]: '' },
          start: [{ command: editor(note(file)) }],
        }),
        evaluator: judgedBy(fileIs(note(file), word)),
        solve: [type(word), key('ctrl+s'), finish],
        miss: [type(word), finish],
      };
    },
  },
  {
    name: 'note-replace',
    apps: ['mousepad'],
    steps: 3,
    build(r, screen) {
      const [old, word, wrong] = pickSome(r, r.words.texts, 3),
        file = r.pick(r.words.items);
      return {
        instruction: `Replace the whole note by "${word}" and save it.`,
        config: setup(r, {
          look: editorLook(place(r, screen, NOTE_SIZE.width, NOTE_SIZE.height)),
          files: { [note(file)]: `${old}\n${wrong}` },
          start: [{ command: editor(note(file)) }],
        }),
        evaluator: judgedBy(fileIs(note(file), word)),
        solve: [key('ctrl+a'), type(word), key('ctrl+s'), finish],
        miss: [type(word), key('ctrl+s'), finish],
      };
    },
  },
  {
    name: 'note-append',
    apps: ['mousepad'],
    steps: 3,
    build(r, screen) {
      const [old, word] = pickSome(r, r.words.texts, 2),
        file = r.pick(r.words.items),
        lines = `${r.pick(r.words.items)}\n${r.pick(r.words.items)}\n${old}\n`;
      return {
        instruction: `Add "${word}" at the very end of the note and save it.`,
        config: setup(r, {
          look: editorLook(place(r, screen, NOTE_SIZE.width, NOTE_SIZE.height)),
          files: { [note(file)]: lines },
          start: [{ command: editor(note(file)) }],
        }),
        evaluator: judgedBy(fileIs(note(file), lines + word)),
        solve: [key('ctrl+end'), type(word), key('ctrl+s'), finish],
        miss: [type(word), key('ctrl+s'), finish],
      };
    },
  },
  {
    name: 'note-menu-save',
    apps: ['mousepad'],
    steps: 3,
    build(r, screen) {
      const word = r.pick(r.words.texts),
        file = r.pick(r.words.items);
      return {
        instruction: `Write "${word}" and save it with the "Save" entry of the "File" menu.`,
        config: setup(r, {
          look: editorLook(place(r, screen, NOTE_SIZE.width, NOTE_SIZE.height)),
          files: { [note(file)]: '' },
          start: [{ command: editor(note(file)) }],
        }),
        evaluator: judgedBy(fileIs(note(file), word)),
        solve: [type(word), menu('File'), menuItem('Save'), finish],
        miss: [type(word), menu('File'), finish],
      };
    },
  },
  {
    name: 'note-clear',
    apps: ['mousepad'],
    steps: 3,
    build(r, screen) {
      const words = pickSome(r, r.words.texts, 3),
        file = r.pick(r.words.items);
      return {
        instruction: 'Delete all the text of the note and save the empty note.',
        config: setup(r, {
          look: editorLook(place(r, screen, NOTE_SIZE.width, NOTE_SIZE.height)),
          files: { [note(file)]: words.join('\n') },
          start: [{ command: editor(note(file)) }],
        }),
        evaluator: judgedBy({ command: `test -e ${note(file)} && wc -c < ${note(file)}`, prints: '0\n' }),
        solve: [key('ctrl+a'), key('delete'), key('ctrl+s'), finish],
        miss: [key('delete'), key('ctrl+s'), finish],
      };
    },
  },
  {
    name: 'note-discard',
    apps: ['mousepad'],
    steps: 3,
    heldout: true,
    build(r, screen) {
      const [old, word] = pickSome(r, r.words.texts, 2),
        file = r.pick(r.words.items);
      return {
        instruction: `Write "${word}" into the note, then quit the editor without saving.`,
        config: setup(r, {
          look: editorLook(place(r, screen, NOTE_SIZE.width, NOTE_SIZE.height)),
          files: { [note(file)]: old },
          start: [watchedEditor(note(file))],
        }),
        evaluator: judgedBy(fileIs(note(file), old), NO_EDITOR, WAS_CHANGED),
        solve: [type(word), key('ctrl+q'), button("Don't Save"), finish],
        miss: [type(word), key('ctrl+q'), button('Save'), finish],
      };
    },
  },
  {
    name: 'note-copy',
    apps: ['mousepad'],
    steps: 5,
    build(r, screen) {
      const [from, to] = pickSome(r, r.words.items, 2),
        text = `${r.pick(r.words.texts)} ${r.pick(r.words.items)}`,
        half = Math.floor(screen.width / 2),
        flip = r.int(2) === 0;
      const at = [place(r, screen, 300, 180, { width: half }), place(r, screen, 300, 180, { x: half, width: half })],
        a = at[flip ? 1 : 0]!,
        b = at[flip ? 0 : 1]!;
      const area =
        (name: string): Where =>
        async (s) => {
          const w = await s.window({ title: editorTitle(name) });
          return { x: w.x + 20, y: w.y + 70, width: w.width - 40, height: w.height - 90 };
        };
      const start = (name: string, box: Box) => ({
        command: editor(note(name)),
        then: [`wmctrl -r ${name} -e 0,${box.x},${box.y},${box.width},${box.height}`],
      });
      return {
        instruction: `Copy the whole text of "${from}" into the empty note "${to}" and save that.`,
        config: setup(r, {
          look: { ...editorLook(a), css: SMALL_MENU },
          files: { [note(from)]: text, [note(to)]: '' },
          start: [start(to, b), start(from, a)],
        }),
        evaluator: judgedBy(fileIs(note(to), text), fileIs(note(from), text)),
        solve: [key('ctrl+a'), key('ctrl+c'), clickBox(area(to)), key('ctrl+v'), key('ctrl+s'), finish],
        miss: [key('ctrl+a'), key('ctrl+x'), clickBox(area(to)), key('ctrl+v'), finish],
      };
    },
  },
];
