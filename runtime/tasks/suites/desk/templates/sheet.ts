import type { Size } from '../../../../domain/index.js';
import type { Check, Look, Scene, SetupPlan, Template } from '../kit.js';
import type { Box } from '../box.js';
import { geometry, judgedBy, pickSome, place, q, setup } from '../kit.js';
import type { Move, Where } from '../moves.js';
import { clickBox, enterText, finish, key } from '../moves.js';
import { asking } from '../siblings.js';

/** The spreadsheet, gnumeric. */

const BOOK = '/home/user/Documents/Book.gnumeric';
/** The window's own area; its menu bar does not get narrower. */
const SIZE = { width: 549, height: 290 };
/**
 * Cell A1 in the window's own area with the fonts below, and the pitch of columns and rows; A to E and rows 1 to 5 are
 * in view.
 */
const GRID = { x: 58, y: 82, width: 80, height: 27, columns: 'ABCDE', rows: 5 };
const LOOK: Look = {
  css: '* { font: bold 11pt "DejaVu Sans"; }\nbutton { padding: 1px 4px; min-height: 0; }',
  gtk2: '',
  fixedLetters: true,
  settings:
    '[org/gnome/gnumeric/core/gui/toolbars]\nstandard-visible=false\nformat-visible=false\nobject-visible=false\n',
};

type Cells = Readonly<Record<string, string | number>>;

const place1 = (cell: string): { col: number; row: number } => ({
  col: GRID.columns.indexOf(cell[0]!),
  row: Number(cell.slice(1)) - 1,
});
export const cellNames = [...GRID.columns].flatMap((c) => Array.from({ length: GRID.rows }, (_, i) => `${c}${i + 1}`));

/** Four words, each in a column of its own: the program completes what is typed from the cells above and below. */
export function wordedCells(r: Scene): { names: string[]; words: string[]; cells: Record<string, string> } {
  const names = pickSome(r, [...GRID.columns], 4).map((c) => r.pick(cellNames.slice(1).filter((n) => n[0] === c))),
    words = pickSome(r, r.words.items, 4);
  return { names, words, cells: Object.fromEntries(names.map((n, k) => [n, words[k]!])) };
}

/** A workbook in Gnumeric's own format: large letters, as wide as the grid above. */
function workbook(cells: Cells): string {
  const xml = Object.entries(cells)
    .map(([name, v]) => {
      const { col, row } = place1(name);
      return `<gnm:Cell Row="${row}" Col="${col}" ValueType="${typeof v === 'number' ? 40 : 60}">${v}</gnm:Cell>`;
    })
    .join('');
  return (
    '<?xml version="1.0"?><gnm:Workbook xmlns:gnm="http://www.gnumeric.org/v10.dtd"><gnm:SheetNameIndex><gnm:SheetName>Sheet1</gnm:SheetName></gnm:SheetNameIndex><gnm:Sheets><gnm:Sheet><gnm:Name>Sheet1</gnm:Name><gnm:MaxCol>-1</gnm:MaxCol><gnm:MaxRow>-1</gnm:MaxRow><gnm:Zoom>1</gnm:Zoom>' +
    '<gnm:Styles><gnm:StyleRegion startCol="0" startRow="0" endCol="255" endRow="65535"><gnm:Style><gnm:Font Unit="14" Bold="1">Sans</gnm:Font></gnm:Style></gnm:StyleRegion></gnm:Styles><gnm:Rows DefaultSizePts="20"/><gnm:Cols DefaultSizePts="60"/>' +
    `<gnm:Cells>${xml}</gnm:Cells></gnm:Sheet></gnm:Sheets></gnm:Workbook>`
  );
}

export function bookPlan(r: Scene, screen: Size, cells: Cells): SetupPlan {
  const at = place(r, screen, SIZE.width, SIZE.height);
  return {
    look: LOOK,
    files: { [BOOK]: workbook(cells) },
    start: [
      { command: `GSETTINGS_BACKEND=keyfile exec gnumeric --geometry=${geometry({ ...at, width: 480 })} ${q(BOOK)}` },
    ],
  };
}

/** Checks the saved book, as "row col content" lines; the program compresses what it saves. */
export const bookIs = (cells: Readonly<Record<string, string>>): Check => ({
  command: `zcat -f ${q(BOOK)} | grep -o '<gnm:Cell [^>]*>[^<]*' | sed -E 's/.*Row="([0-9]+)" Col="([0-9]+)"[^>]*>/\\1 \\2 /' | LC_ALL=C sort`,
  prints: Object.entries(cells)
    .map(([name, v]) => {
      const { col, row } = place1(name);
      return `${row} ${col} ${v}\n`;
    })
    .sort()
    .join(''),
});

/** `scrolled`: rows above the first that is in view. */
const cellBox =
  (name: string, scrolled: number): Where =>
  async (s): Promise<Box> => {
    const w = await s.window({ class: 'Gnumeric' }),
      { col, row } = place1(name);
    return {
      x: w.x + GRID.x + col * GRID.width,
      y: w.y + GRID.y + (row - scrolled) * GRID.height,
      width: GRID.width,
      height: GRID.height,
    };
  };
export const cell = (name: string, scrolled = 0): Move => clickBox(cellBox(name, scrolled));
type Entry = readonly [cell: string, text: string];
/**
 * Two cells, in this order unless the second would be out of view: Enter in the last row that is in view scrolls the
 * sheet by one.
 */
export function fillBoth(first: Entry, second: Entry): Move[] {
  const rows = [first, second].map(([name]) => place1(name).row),
    scrolls = rows[0] === GRID.rows - 1;
  if (scrolls && rows[1] === 0) return fillBoth(second, first);
  return [cell(first[0]), enterText(first[1]), cell(second[0], scrolls ? 1 : 0), enterText(second[1])];
}
const two = (r: Scene): number => 10 + r.int(90);

export const sheetTemplates: readonly Template[] = [
  {
    name: 'cell-fill',
    apps: ['gnumeric'],
    steps: 3,
    build(r, screen) {
      const [at, other] = pickSome(r, cellNames.slice(1), 2),
        value = String(two(r));
      return {
        ...asking(
          (name) => [`Put "${value}" into cell "${name}" and save the sheet.`, bookIs({ [name]: value })],
          at,
          cellNames.slice(1).filter((name) => name !== at),
        ),
        config: setup(r, bookPlan(r, screen, {})),
        solve: [cell(at), enterText(value), key('ctrl+s'), finish],
        miss: [cell(other), enterText(value), key('ctrl+s'), finish],
      };
    },
  },
  {
    name: 'cell-two',
    apps: ['gnumeric'],
    steps: 5,
    build(r, screen) {
      const [a, b] = pickSome(r, cellNames.slice(1), 2),
        v = String(two(r)),
        w = r.pick(r.words.items);
      return {
        instruction: `Put "${v}" into "${a}" and "${w}" into "${b}", then save.`,
        config: setup(r, bookPlan(r, screen, {})),
        evaluator: judgedBy(bookIs({ [a]: v, [b]: w })),
        solve: [...fillBoth([a, v], [b, w]), key('ctrl+s'), finish],
        miss: [...fillBoth([b, v], [a, w]), key('ctrl+s'), finish],
      };
    },
  },
  {
    name: 'cell-formula',
    apps: ['gnumeric'],
    steps: 3,
    build(r, screen) {
      const col = r.pick([...GRID.columns]),
        cells = { [`${col}1`]: two(r), [`${col}2`]: two(r), [`${col}3`]: two(r) },
        at = `${col}5`,
        formula = `=sum(${col}1:${col}3)`,
        wrong = r.pick(cellNames.filter((c) => !(c in cells) && c !== at));
      const held = {
        ...Object.fromEntries(Object.entries(cells).map(([k, v]) => [k, String(v)])),
        [at]: `=sum(${col}1:${col}3)`,
      };
      return {
        instruction: `Enter the formula "${formula}" in cell "${at}" and save the file.`,
        config: setup(r, bookPlan(r, screen, cells)),
        evaluator: judgedBy(bookIs(held)),
        solve: [cell(at), enterText(formula), key('ctrl+s'), finish],
        miss: [cell(wrong), enterText(formula), key('ctrl+s'), finish],
      };
    },
  },
  {
    name: 'cell-clear',
    apps: ['gnumeric'],
    steps: 3,
    heldout: true,
    build(r, screen) {
      const names = pickSome(r, cellNames.slice(1), 4),
        words = pickSome(r, r.words.items, 4),
        cells = Object.fromEntries(names.map((n, i) => [n, words[i]!])),
        i = r.int(4);
      const without = Object.fromEntries(Object.entries(cells).filter(([n]) => n !== names[i]));
      return {
        instruction: `Delete the content of the cell with "${words[i]!}" and save.`,
        config: setup(r, bookPlan(r, screen, cells)),
        evaluator: judgedBy(bookIs(without)),
        solve: [cell(names[i]!), key('delete'), key('ctrl+s'), finish],
        miss: [cell(names[(i + 1) % 4]!), key('delete'), key('ctrl+s'), finish],
      };
    },
  },
];
