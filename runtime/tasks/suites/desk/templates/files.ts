import type { Random, Size } from '../../../../domain/index.js';
import { ITEMS } from '../lexicon.js';
import type { Box, Check, Look, SetupPlan, Template } from '../kit.js';
import { LARGE, judgedBy, pickSome, place, q, setup } from '../kit.js';
import type { Move, Sight } from '../moves.js';
import { clickBox, enterText, finish, key } from '../moves.js';

/** The file manager, pcmanfm: icons in rows, folders first, then by name. */

export const FOLDER = '/home/user/Fruit';
/** Window size: four icons in a row, three rows. */
const SIZE = { width: 460, height: 270 };
/** Icon cells, measured in the window's own area with the font of LARGE and icons of 48 px: first cell's corner, pitch, and the part that reacts. */
const GRID = { x: 8, y: 36, pitchX: 94, pitchY: 78, width: 88, height: 70, columns: 4 };

const CONFIG = `[config]
bm_open_method=0
[volume]
mount_on_startup=0
mount_removable=0
autorun=0
[ui]
always_show_tabs=0
win_width=${SIZE.width}
win_height=${SIZE.height}
side_pane_mode=hidden;places
view_mode=icon
show_hidden=0
sort=name;ascending;
show_statusbar=0
toolbar=hidden
`;
export const FILES_LOOK: Look = LARGE;
export const filesConfig = { '/home/user/.config/pcmanfm/default/pcmanfm.conf': CONFIG };

export function fileManager(r: Random, screen: Size, folder: string = FOLDER): SetupPlan['start'][number] {
  const at = place(r, screen, SIZE.width, SIZE.height);
  return { command: `exec pcmanfm ${q(folder)}`, then: [`wmctrl -x -r pcmanfm.Pcmanfm -e 0,${at.x},${at.y},${at.width},${at.height}`] };
}

/** Where the icon of an entry is; `folders` and `files` are all that the folder holds. */
export const iconBox = (name: string, folders: readonly string[], files: readonly string[]) => async (s: Sight): Promise<Box> => {
  const order = [...[...folders].sort(), ...[...files].sort()], i = order.indexOf(name);
  const w = await s.window({ class: 'Pcmanfm' });
  return { x: w.x + GRID.x + (i % GRID.columns) * GRID.pitchX, y: w.y + GRID.y + Math.floor(i / GRID.columns) * GRID.pitchY, width: GRID.width, height: GRID.height };
};
const icon = (name: string, folders: readonly string[], files: readonly string[]): Move => clickBox(iconBox(name, folders, files));

/** Everything below the folder with its content, sorted: "name:content" for files, "name/" for folders. */
export const tree = (folder: string = FOLDER): string => `cd ${q(folder)} && find . -mindepth 1 \\( -type d -printf '%P/\\n' -o -type f -printf '%P:' -exec head -c 200 {} \\; -printf '\\n' \\) | LC_ALL=C sort`;
/** `entries`: "path/" for folders, "path:content" for files. */
export const treeIs = (entries: readonly string[], folder: string = FOLDER): Check => ({ command: tree(folder), prints: [...entries].sort().map((e) => `${e}\n`).join('') });

const plan = (r: Random, screen: Size, folders: readonly string[], files: readonly string[]): SetupPlan => ({
  look: FILES_LOOK, folders: folders.map((f) => `${FOLDER}/${f}`), files: { ...filesConfig, ...Object.fromEntries(files.map((f) => [`${FOLDER}/${f}`, f.toLowerCase()])) }, start: [fileManager(r, screen)],
});
const held = (names: readonly string[]): string[] => names.map((f) => `${f}:${f.toLowerCase()}`);

export const fileTemplates: readonly Template[] = [
  {
    name: 'file-rename', apps: ['pcmanfm'], steps: 3,
    build(r, screen) {
      const names = pickSome(r, ITEMS, 6), files = names.slice(0, 5), fresh = names[5]!, i = r.int(5), old = files[i]!, other = files[(i + 1) % 5]!;
      return { instruction: `Rename the file "${old}" to "${fresh}".`, config: setup(plan(r, screen, [], files)),
        evaluator: judgedBy(treeIs([...held(files.filter((f) => f !== old)), `${fresh}:${old.toLowerCase()}`])),
        solve: [icon(old, [], files), key('f2'), enterText(fresh), finish], miss: [icon(other, [], files), key('f2'), enterText(fresh), finish] };
    },
  },
  {
    name: 'file-delete', apps: ['pcmanfm'], steps: 3,
    build(r, screen) {
      const files = pickSome(r, ITEMS, 5), i = r.int(5), gone = files[i]!, other = files[(i + 1) % 5]!;
      return { instruction: `Delete the file "${gone}" and confirm.`, config: setup(plan(r, screen, [], files)),
        evaluator: judgedBy(treeIs(held(files.filter((f) => f !== gone)))),
        solve: [icon(gone, [], files), key('delete'), key('enter'), finish], miss: [icon(other, [], files), key('delete'), key('enter'), finish] };
    },
  },
  {
    name: 'folder-new', apps: ['pcmanfm'], steps: 2,
    build(r, screen) {
      const names = pickSome(r, ITEMS, 5), files = names.slice(0, 3), fresh = names[3]!, wrong = names[4]!;
      return { instruction: `Create a new folder called "${fresh}" here.`, config: setup(plan(r, screen, [], files)),
        evaluator: judgedBy(treeIs([...held(files), `${fresh}/`])),
        solve: [key('ctrl+shift+n'), enterText(fresh), finish], miss: [key('ctrl+shift+n'), enterText(wrong), finish] };
    },
  },
];
