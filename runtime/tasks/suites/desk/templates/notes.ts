import type { Box, Look, Template } from '../kit.js';
import { LARGE, fileIs, judgedBy, pickSome, place, q, setup } from '../kit.js';
import { ITEMS, TEXTS } from '../lexicon.js';
import { finish, key, type } from '../moves.js';

/** The text editor, mousepad. */

export const DOCUMENTS = '/home/user/Documents';

/** Mousepad's window place comes from its settings. */
export const editorLook = (at: Box, look: Look = LARGE): Look => ({
  ...look,
  // The file dialog does not fit in 640x400 otherwise.
  css: `${look.css}filechooser *, dialog * { font-size: 11pt; }\ndialog button { min-height: 24px; }\n`,
  settings: `[org/xfce/mousepad/preferences/window]\nremember-position=true\npath-in-title=false\n[org/xfce/mousepad/preferences/view]\nuse-default-monospace-font=false\nfont-name='DejaVu Sans Mono Bold 14'\n`
    + '[org/gtk/settings/file-chooser]\nwindow-size=(560, 280)\nsidebar-width=120\n'
    + `[org/xfce/mousepad/state/window]\nleft=uint32 ${at.x}\ntop=uint32 ${at.y}\nwidth=uint32 ${at.width}\nheight=uint32 ${at.height}\n`,
});
export const editor = (...files: readonly string[]): string => `cd ${DOCUMENTS}; GSETTINGS_BACKEND=keyfile exec mousepad ${files.map(q).join(' ')}`;
/** Lines a note is made of, as typed; mousepad ends a file as it was typed. */
const note = (name: string): string => `${DOCUMENTS}/${name}`;
const SIZE = { width: 440, height: 230 };

export const noteTemplates: readonly Template[] = [
  {
    name: 'note-save', apps: ['mousepad'], steps: 2,
    build(r, screen) {
      const [word] = pickSome(r, TEXTS, 1) as [string], file = r.pick(ITEMS);
      return { instruction: `Write "${word}" into the open note and save it.`,
        config: setup({ look: editorLook(place(r, screen, SIZE.width, SIZE.height)), files: { [note(file)]: '' }, start: [{ command: editor(note(file)) }] }),
        evaluator: judgedBy(fileIs(note(file), word)), solve: [type(word), key('ctrl+s'), finish], miss: [type(word), finish] };
    },
  },
  {
    name: 'note-replace', apps: ['mousepad'], steps: 3,
    build(r, screen) {
      const [old, word, wrong] = pickSome(r, TEXTS, 3) as [string, string, string], file = r.pick(ITEMS);
      return { instruction: `Replace the whole note by "${word}" and save it.`,
        config: setup({ look: editorLook(place(r, screen, SIZE.width, SIZE.height)), files: { [note(file)]: `${old}\n${wrong}` }, start: [{ command: editor(note(file)) }] }),
        evaluator: judgedBy(fileIs(note(file), word)), solve: [key('ctrl+a'), type(word), key('ctrl+s'), finish], miss: [type(word), key('ctrl+s'), finish] };
    },
  },
];
