import type { Size } from '../../../../domain/index.js';
import type { Check, Look, Scene, SetupPlan, Template } from '../kit.js';
import type { Box } from '../box.js';
import { INFEASIBLE, LARGE, judgedBy, pickSome, place, q, setup } from '../kit.js';
import type { Move, Where } from '../moves.js';
import { clickBox, doubleClickBox, drag, enterText, finish, giveUp, key } from '../moves.js';
import { asking } from '../siblings.js';

/** The file manager, pcmanfm: icons in rows, folders first, then by name. */

export const FOLDER = '/home/user/Fruit';
/** Window size: four icons in a row, three rows. */
const SIZE = { width: 460, height: 270 };
/**
 * Icon cells, measured in the window's own area with the font of LARGE and icons of 48 px: first cell's corner, pitch,
 * and the part that reacts.
 */
const GRID = { x: 14, y: 40, pitchX: 94, pitchY: 78, width: 78, height: 72, columns: 4 };

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

export function fileManager(r: Scene, screen: Size, folder: string = FOLDER): SetupPlan['start'][number] {
  const at = place(r, screen, SIZE.width, SIZE.height);
  return {
    command: `exec pcmanfm ${q(folder)}`,
    then: [`wmctrl -x -r pcmanfm.Pcmanfm -e 0,${at.x},${at.y},${at.width},${at.height}`],
  };
}

/** Place of an entry's icon; `folders` and `files` are all that the folder holds. */
export const iconBox =
  (name: string, folders: readonly string[], files: readonly string[]): Where =>
  async (s): Promise<Box> => {
    const order = [...[...folders].sort(), ...[...files].sort()],
      i = order.indexOf(name);
    const w = await s.window({ class: 'Pcmanfm' });
    return {
      x: w.x + GRID.x + (i % GRID.columns) * GRID.pitchX,
      y: w.y + GRID.y + Math.floor(i / GRID.columns) * GRID.pitchY,
      width: GRID.width,
      height: GRID.height,
    };
  };
export const icon = (name: string, folders: readonly string[], files: readonly string[]): Move =>
  clickBox(iconBox(name, folders, files));

/** Everything below the folder with its content, sorted: "name:content" for files, "name/" for folders. */
export const tree = (folder: string = FOLDER): string =>
  `cd ${q(folder)} && find . -mindepth 1 \\( -type d -printf '%P/\\n' -o -type f -printf '%P:' -exec head -c 200 {} \\; -printf '\\n' \\) | LC_ALL=C sort`;
/** `entries`: "path/" for folders, "path:content" for files. */
export const fileTree = (entries: readonly string[], folder: string = FOLDER): Check => ({
  command: tree(folder),
  prints: [...entries]
    .sort()
    .map((e) => `${e}\n`)
    .join(''),
});

export const folderPlan = (
  r: Scene,
  screen: Size,
  folders: readonly string[],
  files: readonly string[],
): SetupPlan => ({
  look: FILES_LOOK,
  folders: folders.map((f) => `${FOLDER}/${f}`),
  files: { ...filesConfig, ...Object.fromEntries(files.map((f) => [`${FOLDER}/${f}`, f.toLowerCase()])) },
  start: [fileManager(r, screen)],
});
const without = (names: readonly string[], name: string): string[] => names.filter((n) => n !== name);
export const filesHeld = (names: readonly string[]): string[] => names.map((f) => `${f}:${f.toLowerCase()}`);

/** Checks that one of the files of the folder lies in the only folder within it. */
export const movedInto = (box: string, moved: string, files: readonly string[]): Check =>
  fileTree([`${box}/`, `${box}/${moved}:${moved.toLowerCase()}`, ...filesHeld(without(files, moved))]);
export const openIcon = (name: string, folders: readonly string[], files: readonly string[]): Move =>
  doubleClickBox(iconBox(name, folders, files));
/** Takes a file and puts it into the only folder beside it. */
export const carry = (file: string, box: string, files: readonly string[], how: 'ctrl+c' | 'ctrl+x'): Move[] => [
  icon(file, [box], files),
  key(how),
  openIcon(box, [box], files),
  key('ctrl+v'),
  finish,
];
/** The file manager's window shows this folder. */
export const shows = (name: string): Check => ({
  command: `wmctrl -lx | awk '$3 ~ /Pcmanfm/ { print $NF }'`,
  prints: `${name}\n`,
});

/**
 * A view into a folder of three files; the folder above it is the goal. One selection only: right after a second one
 * the program would still act on the first, because it notes a new selection late.
 */
export function upwards(r: Scene, screen: Size) {
  const [box, ...files] = pickSome(r, r.words.items, 4),
    i = r.int(3),
    base = folderPlan(r, screen, [], []),
    inner = `${FOLDER}/${box}`;
  return {
    box,
    files,
    want: files[i]!,
    other: files[(i + 1) % 3]!,
    config: setup(r, {
      ...base,
      files: { ...base.files, ...Object.fromEntries(files.map((f) => [`${inner}/${f}`, f.toLowerCase()])) },
      start: [fileManager(r, screen, inner)],
    }),
    take: (f: string, how: 'ctrl+c' | 'ctrl+x'): Move[] => [
      icon(f, [], files),
      key(how),
      key('backspace'),
      key('ctrl+v'),
      finish,
    ],
    after: (inside: readonly string[], out: string): Check =>
      fileTree([`${box}/`, ...inside.map((f) => `${box}/${f}:${f.toLowerCase()}`), ...filesHeld([out])]),
  };
}

export const fileTemplates: readonly Template[] = [
  {
    name: 'file-rename',
    apps: ['pcmanfm'],
    steps: 3,
    build(r, screen) {
      const names = pickSome(r, r.words.items, 6),
        files = names.slice(0, 5),
        fresh = names[5]!,
        i = r.int(5),
        old = files[i]!,
        other = files[(i + 1) % 5]!;
      return {
        ...asking(
          (file) => [
            `Rename the file "${file}" to "${fresh}".`,
            fileTree([...filesHeld(without(files, file)), `${fresh}:${file.toLowerCase()}`]),
          ],
          old,
          without(files, old),
        ),
        config: setup(r, folderPlan(r, screen, [], files)),
        solve: [icon(old, [], files), key('f2'), enterText(fresh), finish],
        miss: [icon(other, [], files), key('f2'), enterText(fresh), finish],
      };
    },
  },
  {
    name: 'file-delete',
    apps: ['pcmanfm'],
    steps: 3,
    build(r, screen) {
      const files = pickSome(r, r.words.items, 5),
        i = r.int(5),
        gone = files[i]!,
        other = files[(i + 1) % 5]!;
      return {
        ...asking(
          (file) => [`Delete the file "${file}" and confirm.`, fileTree(filesHeld(without(files, file)))],
          gone,
          without(files, gone),
        ),
        config: setup(r, folderPlan(r, screen, [], files)),
        solve: [icon(gone, [], files), key('delete'), key('enter'), finish],
        miss: [icon(other, [], files), key('delete'), key('enter'), finish],
      };
    },
  },
  {
    name: 'folder-new',
    apps: ['pcmanfm'],
    steps: 2,
    build(r, screen) {
      const names = pickSome(r, r.words.items, 5),
        files = names.slice(0, 3),
        fresh = names[3]!,
        wrong = names[4]!;
      return {
        instruction: `Create a new folder called "${fresh}" here.`,
        config: setup(r, folderPlan(r, screen, [], files)),
        evaluator: judgedBy(fileTree([...filesHeld(files), `${fresh}/`])),
        solve: [key('ctrl+shift+n'), enterText(fresh), finish],
        miss: [key('ctrl+shift+n'), enterText(wrong), finish],
      };
    },
  },
  {
    name: 'folder-open',
    apps: ['pcmanfm'],
    steps: 1,
    build(r, screen) {
      const names = pickSome(r, r.words.items, 6),
        folders = names.slice(0, 4),
        files = names.slice(4),
        i = r.int(4),
        want = folders[i]!,
        other = folders[(i + 1) % 4]!;
      return {
        ...asking(
          (folder) => [`Open the folder "${folder}" in the file manager.`, shows(folder)],
          want,
          without(folders, want),
        ),
        config: setup(r, folderPlan(r, screen, folders, files)),
        solve: [openIcon(want, folders, files), finish],
        miss: [openIcon(other, folders, files), finish],
      };
    },
  },
  {
    name: 'file-drag',
    apps: ['pcmanfm'],
    steps: 1,
    build(r, screen) {
      const names = pickSome(r, r.words.items, 5),
        [box, ...files] = names as [string, ...string[]],
        i = r.int(4),
        moved = files[i]!,
        other = files[(i + 1) % 4]!;
      const to = iconBox(box, [box], files);
      return {
        ...asking(
          (file) => [`Drag the file "${file}" onto the folder "${box}".`, movedInto(box, file, files)],
          moved,
          without(files, moved),
        ),
        config: setup(r, folderPlan(r, screen, [box], files)),
        solve: [drag(iconBox(moved, [box], files), to), finish],
        miss: [drag(iconBox(other, [box], files), to), finish],
      };
    },
  },
  {
    name: 'file-copy',
    apps: ['pcmanfm'],
    steps: 4,
    build(r, screen) {
      const t = upwards(r, screen);
      return {
        ...asking(
          (file) => [`Copy the file "${file}" into the folder above this one.`, t.after(t.files, file)],
          t.want,
          without(t.files, t.want),
        ),
        config: t.config,
        solve: t.take(t.want, 'ctrl+c'),
        miss: t.take(t.other, 'ctrl+c'),
      };
    },
  },
  {
    name: 'file-move',
    apps: ['pcmanfm'],
    steps: 4,
    heldout: true,
    build(r, screen) {
      const t = upwards(r, screen);
      return {
        instruction: `Cut the file "${t.want}" and paste it into the folder above this one.`,
        config: t.config,
        evaluator: judgedBy(
          t.after(
            t.files.filter((f) => f !== t.want),
            t.want,
          ),
        ),
        solve: t.take(t.want, 'ctrl+x'),
        miss: t.take(t.want, 'ctrl+c'),
      };
    },
  },
  {
    name: 'folder-empty',
    apps: ['pcmanfm'],
    steps: 3,
    build(r, screen) {
      const files = pickSome(r, r.words.items, 3 + r.int(4));
      return {
        instruction: 'Select all files in this folder, delete them and confirm.',
        config: setup(r, folderPlan(r, screen, [], files)),
        evaluator: judgedBy({ command: `${tree()}; echo end`, prints: 'end\n' }),
        solve: [key('ctrl+a'), key('delete'), key('enter'), finish],
        miss: [icon(files[0]!, [], files), key('delete'), key('enter'), finish],
      };
    },
  },
  {
    name: 'folder-rename',
    apps: ['pcmanfm'],
    steps: 3,
    heldout: true,
    build(r, screen) {
      const names = pickSome(r, r.words.items, 6),
        folders = names.slice(0, 3),
        files = names.slice(3, 5),
        fresh = names[5]!,
        i = r.int(3),
        old = folders[i]!,
        other = folders[(i + 1) % 3]!;
      const now = (from: string): string[] => [...folders.filter((f) => f !== from), fresh].map((f) => `${f}/`);
      return {
        instruction: `Give the folder "${old}" the new name "${fresh}".`,
        config: setup(r, folderPlan(r, screen, folders, files)),
        evaluator: judgedBy(fileTree([...now(old), ...filesHeld(files)])),
        solve: [icon(old, folders, files), key('f2'), enterText(fresh), finish],
        miss: [icon(other, folders, files), key('f2'), enterText(fresh), finish],
      };
    },
  },
  {
    name: 'folder-sort',
    apps: ['pcmanfm'],
    steps: 3,
    build(r, screen) {
      // The new folder comes first in the view, because folders do.
      const [fresh, ...files] = pickSome(r, r.words.items, 4),
        i = r.int(3),
        moved = files[i]!,
        other = files[(i + 1) % 3]!;
      const into = (f: string): Move => drag(iconBox(f, [fresh], files), iconBox(fresh, [fresh], files));
      return {
        ...asking(
          (file) => [`Create a folder "${fresh}" and drag the file "${file}" into it.`, movedInto(fresh, file, files)],
          moved,
          without(files, moved),
        ),
        config: setup(r, folderPlan(r, screen, [], files)),
        solve: [key('ctrl+shift+n'), enterText(fresh), into(moved), finish],
        miss: [key('ctrl+shift+n'), enterText(fresh), into(other), finish],
      };
    },
  },
  {
    name: 'file-missing',
    apps: ['pcmanfm'],
    steps: 0,
    infeasible: true,
    build(r, screen) {
      const names = pickSome(r, r.words.items, 6),
        files = names.slice(0, 5),
        absent = names[5]!;
      return {
        instruction: `Delete the file "${absent}" and confirm.`,
        config: setup(r, folderPlan(r, screen, [], files)),
        evaluator: INFEASIBLE,
        solve: [giveUp],
        miss: [icon(r.pick(files), [], files), key('delete'), key('enter'), finish],
      };
    },
  },
];
