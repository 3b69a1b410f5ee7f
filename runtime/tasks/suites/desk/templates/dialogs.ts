import type { Size } from '../../../../domain/index.js';
import type { Asked, Check, Instance, Scene, SetupPlan, Template } from '../kit.js';
import { INFEASIBLE, OUT, fileIs, geometry, judgedBy, pickSome, place, q, setup } from '../kit.js';
import { button, click, doubleClick, finish, giveUp, key, scrollTo } from '../moves.js';
import { asking, otherChoices, otherPairs, others } from '../siblings.js';

/**
 * Dialogs with buttons and lists. A dialog leaves `exit code` and output in a file each, so the verifier sees which
 * button ended it.
 */

/** A yad command line whose result goes to OUT/<name>: its output and then its exit code, each on a line. */
export const dialog = (name: string, args: readonly string[]): string =>
  `o=$(yad ${args.map(q).join(' ')}); c=$?; printf '%s\\n%s\\n' "$o" $c > ${OUT}/${name}`;
export const dialogGave = (name: string, output: string, code: number): Check =>
  fileIs(`${OUT}/${name}`, `${output}\n${code}\n`);

const buttons = (labels: readonly string[]): string[] => labels.map((l, i) => `--button=${l}:${10 + i}`);
/** A dialog of buttons only; they stand in one row. */
const ROW = { width: 4 * 112 + 20, height: 66 };
export const buttonRow = (r: Scene, screen: Size, title: string, labels: readonly string[]): string[] => [
  `--title=${title}`,
  `--geometry=${geometry(place(r, screen, labels.length * 112 + 20, ROW.height))}`,
  '--buttons-layout=center',
  '--borders=8',
  ...buttons(labels),
];

/** Buttons in two columns that each write their own name. */
function buttonGrid(r: Scene, screen: Size, title: string, labels: readonly string[]): { command: string } {
  const rows = Math.ceil(labels.length / 2);
  const at = place(r, screen, 270, rows * 43 + 12);
  return {
    command: `cd ${OUT}; yad ${[`--title=${title}`, `--geometry=${geometry(at)}`, '--form', '--columns=2', '--borders=6', '--no-buttons', ...labels.map((l) => `--field=${l}:FBTN`), ...labels.map((l) => `sh -c "echo ${l} >> pressed"`)].map(q).join(' ')}`,
  };
}

/** A list dialog; rows are 29 px high in the large look. */
export function listArgs(
  r: Scene,
  screen: Size,
  title: string,
  rows: readonly string[],
  o: { readonly shown?: number; readonly kind?: 'radiolist' | 'checklist'; readonly buttons?: readonly string[] } = {},
): string[] {
  const at = place(r, screen, 250, (o.shown ?? rows.length) * 29 + 66);
  return [
    `--title=${title}`,
    `--geometry=${geometry(at)}`,
    '--list',
    '--no-headers',
    ...(o.kind ? [`--${o.kind}`, '--column=', '--print-column=2'] : ['--print-column=1']),
    '--column=',
    '--separator=',
    ...(o.buttons ?? ['--button=OK:0', '--button=Cancel:1']),
    ...rows.flatMap((x) => (o.kind ? ['FALSE', x] : [x])),
  ];
}
export const row = (name: string, window?: string) => click({ role: 'table cell', name, window });

const one = (
  r: Scene,
  asked: Asked & Pick<Instance, 'siblings'>,
  plan: SetupPlan,
  solve: Instance['solve'],
  miss: Instance['miss'],
): Instance => ({
  ...asked,
  config: setup(r, plan),
  solve: [...solve, finish],
  miss: [...miss, finish],
});

const wordsIn = (r: Scene): readonly string[] => [...r.words.items, ...r.words.actions];

export const dialogTemplates: readonly Template[] = [
  {
    name: 'press-button',
    apps: ['yad'],
    steps: 1,
    build(r, screen) {
      const labels = pickSome(r, wordsIn(r), 4),
        i = r.int(4),
        wrong = (i + 1 + r.int(3)) % 4;
      return one(
        r,
        asking((k) => [`Click the "${labels[k]!}" button.`, dialogGave('a', '', 10 + k)], i, others(4, i)),
        { start: [{ command: dialog('a', buttonRow(r, screen, 'Choose', labels)) }] },
        [button(labels[i]!)],
        [button(labels[wrong]!)],
      );
    },
  },
  {
    name: 'press-grid',
    apps: ['yad'],
    steps: 1,
    build(r, screen) {
      const labels = pickSome(r, wordsIn(r), 8),
        i = r.int(8),
        wrong = (i + 1 + r.int(7)) % 8;
      return one(
        r,
        asking(
          (k) => [`Press "${labels[k]!}" once, and nothing else.`, fileIs(`${OUT}/pressed`, `${labels[k]!}\n`)],
          i,
          others(8, i),
        ),
        { start: [buttonGrid(r, screen, 'Panel', labels)] },
        [button(labels[i]!)],
        [button(labels[wrong]!)],
      );
    },
  },
  {
    name: 'press-order',
    apps: ['yad'],
    steps: 3,
    build(r, screen) {
      const labels = pickSome(r, wordsIn(r), 6),
        [a, b, c] = pickSome(r, labels, 3);
      return one(
        r,
        asking(
          ([x, y, z]) => [
            `Press "${x!}", then "${y!}", then "${z!}".`,
            fileIs(`${OUT}/pressed`, `${x!}\n${y!}\n${z!}\n`),
          ],
          [a, b, c],
          otherChoices([labels, labels, labels], [a, b, c]).filter((w) => new Set(w).size === 3),
        ),
        { start: [buttonGrid(r, screen, 'Panel', labels)] },
        [button(a), button(b), button(c)],
        [button(a), button(c), button(b)],
      );
    },
  },
  {
    name: 'press-two',
    apps: ['yad'],
    steps: 2,
    build(r, screen) {
      const first = pickSome(r, wordsIn(r), 3),
        second = pickSome(
          r,
          wordsIn(r).filter((w) => !first.includes(w)),
          3,
        ),
        i = r.int(3),
        j = r.int(3);
      return one(
        r,
        asking(
          ([x, y]) => [
            `Click "${x!}" in the first window and "${y!}" in the one that follows.`,
            dialogGave('a', '', 10 + first.indexOf(x!)),
            dialogGave('b', '', 10 + second.indexOf(y!)),
          ],
          [first[i]!, second[j]!],
          otherChoices([first, second], [first[i]!, second[j]!]),
        ),
        {
          start: [
            {
              command: `${dialog('a', buttonRow(r, screen, 'First', first))}; ${dialog('b', buttonRow(r, screen, 'Second', second))}`,
            },
          ],
        },
        [button(first[i]!), button(second[j]!)],
        [button(first[i]!), button(second[(j + 1) % 3]!)],
      );
    },
  },
  {
    name: 'press-three',
    apps: ['yad'],
    steps: 3,
    heldout: true,
    build(r, screen) {
      const all = pickSome(r, wordsIn(r), 9),
        rows = [all.slice(0, 3), all.slice(3, 6), all.slice(6)],
        want = rows.map(() => r.int(3));
      const w = rows.map((labels, k) => labels[want[k]!]!);
      return one(
        r,
        {
          instruction: `Three windows come one after another: click "${w[0]!}", "${w[1]!}" and "${w[2]!}".`,
          evaluator: judgedBy(...want.map((i, k) => dialogGave(`d${k}`, '', 10 + i))),
        },
        {
          start: [
            {
              command: rows
                .map((labels, k) => dialog(`d${k}`, buttonRow(r, screen, `Part ${k + 1}`, labels)))
                .join('; '),
            },
          ],
        },
        w.map((x) => button(x)),
        [button(w[0]!), button(w[1]!), button(rows[2]![(want[2]! + 1) % 3]!)],
      );
    },
  },
  {
    name: 'list-pick',
    apps: ['yad'],
    steps: 2,
    build(r, screen) {
      const rows = pickSome(r, r.words.items, 6),
        want = r.pick(rows.slice(1)),
        wrong = rows.find((x) => x !== want)!;
      return one(
        r,
        // The first row is chosen already.
        asking(
          (x) => [`Select "${x}" in the list and press OK.`, dialogGave('a', x, 0)],
          want,
          rows.slice(1).filter((x) => x !== want),
        ),
        { start: [{ command: dialog('a', listArgs(r, screen, 'Fruit', rows)) }] },
        [row(want), button('OK')],
        [row(wrong), button('OK')],
      );
    },
  },
  {
    name: 'list-confirm',
    apps: ['yad'],
    steps: 3,
    build(r, screen) {
      const rows = pickSome(r, r.words.items, 5),
        want = r.pick(rows.slice(1)),
        yes = r.int(2) === 0;
      const ask = [
        '--title=Sure',
        `--geometry=${geometry(place(r, screen, 250, 90))}`,
        '--text=Are you sure?',
        '--borders=8',
        '--buttons-layout=center',
        '--button=Yes:0',
        '--button=No:1',
      ];
      const answer = yes ? 'Yes' : 'No',
        other = yes ? 'No' : 'Yes';
      return one(
        r,
        asking(
          ([x, says]) => [
            `Select "${x!}", press OK, and answer "${says!}" when asked.`,
            dialogGave('a', x!, 0),
            dialogGave('b', '', says === 'Yes' ? 0 : 1),
          ],
          [want, answer],
          otherChoices([rows.slice(1), ['Yes', 'No']], [want, answer]),
        ),
        { start: [{ command: `${dialog('a', listArgs(r, screen, 'Fruit', rows))}; ${dialog('b', ask)}` }] },
        [row(want), button('OK'), button(answer)],
        [row(want), button('OK'), button(other)],
      );
    },
  },
  {
    name: 'list-scroll',
    apps: ['yad'],
    steps: 3,
    build(r, screen) {
      const rows = r.shuffle([...r.words.items, ...r.words.actions]),
        want = r.pick(rows.slice(6)),
        wrong = rows[1 + r.int(3)]!;
      return one(
        r,
        asking(
          (x) => [`Scroll the list down to "${x}", select it and press OK.`, dialogGave('a', x, 0)],
          want,
          rows.slice(6).filter((x) => x !== want),
        ),
        { start: [{ command: dialog('a', listArgs(r, screen, 'Stock', rows, { shown: 5 })) }] },
        [scrollTo({ role: 'table cell', name: want }, { role: 'scroll pane' }), button('OK')],
        [row(wrong), button('OK')],
      );
    },
  },
  {
    name: 'list-radio',
    apps: ['yad'],
    steps: 2,
    build(r, screen) {
      const rows = pickSome(r, r.words.items, 5),
        i = r.int(5),
        wrong = (i + 1 + r.int(4)) % 5;
      const mark = (k: number) => click({ role: 'table cell', name: '', nth: k });
      return one(
        r,
        asking(
          (k) => [`Mark the circle beside "${rows[k]!}" and press OK.`, dialogGave('a', rows[k]!, 0)],
          i,
          others(5, i),
        ),
        { start: [{ command: dialog('a', listArgs(r, screen, 'One of', rows, { kind: 'radiolist' })) }] },
        [mark(i), button('OK')],
        [mark(wrong), button('OK')],
      );
    },
  },
  {
    name: 'list-check-two',
    apps: ['yad'],
    steps: 3,
    build(r, screen) {
      const rows = pickSome(r, r.words.items, 5),
        [i, j] = pickSome(r, [0, 1, 2, 3, 4], 2).sort();
      const mark = (k: number) => click({ role: 'table cell', name: '', nth: k });
      return one(
        r,
        asking(
          ([a, b]) => [
            `Tick "${rows[a]!}" and "${rows[b]!}", then press OK.`,
            dialogGave('a', `${rows[a]!}\n${rows[b]!}`, 0),
          ],
          [i, j] as const,
          otherPairs(5, [i, j]),
        ),
        { start: [{ command: dialog('a', listArgs(r, screen, 'Several', rows, { kind: 'checklist' })) }] },
        [mark(i), mark(j), button('OK')],
        [mark(i), button('OK')],
      );
    },
  },
  {
    name: 'list-open',
    apps: ['yad'],
    steps: 1,
    heldout: true,
    build(r, screen) {
      const rows = pickSome(r, r.words.items, 6),
        want = r.pick(rows.slice(1));
      return one(
        r,
        { instruction: `Double-click "${want}" in the list.`, evaluator: judgedBy(dialogGave('a', want, 0)) },
        { start: [{ command: dialog('a', listArgs(r, screen, 'Fruit', rows)) }] },
        [doubleClick({ role: 'table cell', name: want })],
        [row(want)],
      );
    },
  },
  {
    name: 'list-cancel',
    apps: ['yad'],
    steps: 1,
    build(r, screen) {
      const rows = pickSome(r, r.words.items, 4),
        title = r.pick(r.words.titles);
      return one(
        r,
        {
          instruction: `Close the "${title}" list without choosing anything, with the Cancel button.`,
          evaluator: judgedBy(dialogGave('a', '', 1)),
        },
        { start: [{ command: dialog('a', listArgs(r, screen, title, rows)) }] },
        [button('Cancel')],
        [button('OK')],
      );
    },
  },
  {
    name: 'press-missing',
    apps: ['yad'],
    steps: 0,
    infeasible: true,
    build(r, screen) {
      const all = pickSome(r, wordsIn(r), 5),
        labels = all.slice(0, 4),
        absent = all[4]!;
      return {
        instruction: `Click the "${absent}" button.`,
        config: setup(r, { start: [{ command: dialog('a', buttonRow(r, screen, 'Choose', labels)) }] }),
        evaluator: INFEASIBLE,
        solve: [giveUp],
        miss: [button(labels[r.int(4)]!), finish],
      };
    },
  },
  {
    name: 'list-missing',
    apps: ['yad'],
    steps: 0,
    infeasible: true,
    build(r, screen) {
      const all = pickSome(r, r.words.items, 7),
        rows = all.slice(0, 6),
        absent = all[6]!;
      return {
        instruction: `Select "${absent}" in the list and press OK.`,
        config: setup(r, { start: [{ command: dialog('a', listArgs(r, screen, 'Fruit', rows)) }] }),
        evaluator: INFEASIBLE,
        solve: [giveUp],
        miss: [key('escape'), finish],
      };
    },
  },
];
