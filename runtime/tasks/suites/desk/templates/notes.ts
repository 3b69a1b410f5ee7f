import type { Box, Look, Template } from '../kit.js';
import { LARGE, fileIs, judgedBy, pickSome, place, q, setup } from '../kit.js';
import { ITEMS, TEXTS } from '../lexicon.js';
import { enterText, finish, key, type } from '../moves.js';

/** The text editor, mousepad. */

export const DOCUMENTS = '/home/user/Documents';

/** Mousepad's window place comes from its settings. */
export const editorLook = (at: Box, look: Look = LARGE): Look => ({
  ...look,
  settings: `[org/xfce/mousepad/preferences/window]\nremember-position=true\npath-in-title=false\n[org/xfce/mousepad/preferences/view]\nuse-default-monospace-font=false\nfont-name='DejaVu Sans Mono Bold 14'\n`
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
    name: 'note-save-as', apps: ['mousepad'], steps: 3,
    build(r, screen) {
      const [word, wrong] = pickSome(r, TEXTS, 2) as [string, string], file = r.pick(ITEMS);
      return { instruction: `Write "${word}" in the editor and save it as "${file}".`,
        config: setup({ look: editorLook(place(r, screen, SIZE.width, SIZE.height)), folders: [DOCUMENTS], start: [{ command: editor() }] }),
        evaluator: judgedBy(fileIs(note(file), word)), solve: [type(word), key('ctrl+s'), enterText(file), finish], miss: [type(wrong), key('ctrl+s'), enterText(file), finish] };
    },
  },
];
