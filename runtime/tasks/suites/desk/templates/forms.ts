import type { Size } from '../../../../domain/index.js';
import type { Scene, Template } from '../kit.js';
import { geometry, judgedBy, pickSome, place, setup } from '../kit.js';
import type { Move, Where } from '../moves.js';
import { boxOf, button, click, clickBox, drag, enterText, finish, type } from '../moves.js';
import { asking, otherChoices, otherPairs, others } from '../siblings.js';
import { dialog, dialogGave } from './dialogs.js';

/** Dialogs to be filled in. */

/** Row `k` of a form of text fields: they all have role `text` and lie one below the other. */
export const field = (k: number): Move => click({ role: 'text', nth: k });

/** Rows of a form of three fields. */
const ROWS = [0, 1, 2];

/** Arguments of a form with these fields (`LABEL`, or `LABEL:KIND`), each `LABEL|` in what it gives, and OK and Cancel. */
export function formArgs(
  r: Scene,
  screen: Size,
  title: string,
  size: { readonly width: number; readonly height: number },
  fields: readonly string[],
): string[] {
  return [
    `--title=${title}`,
    `--geometry=${geometry(place(r, screen, size.width, size.height))}`,
    '--form',
    '--separator=|',
    '--borders=4',
    ...fields.map((f) => `--field=${f}`),
    '--button=OK:0',
    '--button=Cancel:1',
  ];
}

export const formTemplates: readonly Template[] = [
  {
    name: 'entry-type',
    apps: ['yad'],
    steps: 2,
    build(r, screen) {
      const [word, other] = pickSome(r, r.words.texts, 2),
        label = r.pick(r.words.fields);
      const args = [
        `--title=${label}`,
        `--geometry=${geometry(place(r, screen, 280, 96))}`,
        '--entry',
        `--entry-label=${label}`,
        '--borders=8',
        '--button=OK:0',
        '--button=Cancel:1',
      ];
      return {
        instruction: `Type "${word}" into the field and press OK.`,
        config: setup(r, { start: [{ command: dialog('a', args) }] }),
        evaluator: judgedBy(dialogGave('a', word, 0)),
        solve: [type(word), button('OK'), finish],
        miss: [type(other), button('OK'), finish],
      };
    },
  },
  {
    name: 'entry-enter',
    apps: ['yad'],
    steps: 1,
    build(r, screen) {
      const [word, other] = pickSome(r, r.words.texts, 2),
        label = r.pick(r.words.fields);
      const args = [
        `--title=${label}`,
        `--geometry=${geometry(place(r, screen, 280, 96))}`,
        '--entry',
        `--entry-label=${label}`,
        '--borders=8',
        '--button=OK:0',
        '--button=Cancel:1',
      ];
      return {
        instruction: `Enter "${word}" and confirm with the Enter key.`,
        config: setup(r, { start: [{ command: dialog('a', args) }] }),
        evaluator: judgedBy(dialogGave('a', word, 0)),
        solve: [enterText(word), finish],
        miss: [enterText(other), finish],
      };
    },
  },
  {
    name: 'form-one',
    apps: ['yad'],
    steps: 3,
    build(r, screen) {
      const labels = r.shuffle(r.words.fields).slice(0, 3),
        i = r.int(3),
        [word] = pickSome(r, r.words.texts, 1);
      const args = formArgs(r, screen, 'Form', { width: 300, height: 3 * 39 + 60 }, labels);
      const values = (k: number): string => labels.map((_, n) => (n === k ? `${word}|` : '|')).join('');
      return {
        ...asking(
          (k) => [`Write "${word}" into the field "${labels[k]!}" and press OK.`, dialogGave('a', values(k), 0)],
          i,
          others(3, i),
        ),
        config: setup(r, { start: [{ command: dialog('a', args) }] }),
        solve: [field(i), type(word), button('OK'), finish],
        miss: [field((i + 1) % 3), type(word), button('OK'), finish],
      };
    },
  },
  {
    name: 'form-two',
    apps: ['yad'],
    steps: 5,
    build(r, screen) {
      const labels = r.shuffle(r.words.fields).slice(0, 3),
        [i, j] = pickSome(r, ROWS, 2),
        [a, b] = pickSome(r, r.words.texts, 2);
      const args = formArgs(r, screen, 'Form', { width: 300, height: 3 * 39 + 60 }, labels);
      return {
        ...asking(
          ([k, l]) => [
            `Set "${labels[k!]!}" to "${a}" and "${labels[l!]!}" to "${b}", then press OK.`,
            dialogGave('a', labels.map((_, n) => (n === k ? `${a}|` : n === l ? `${b}|` : '|')).join(''), 0),
          ],
          [i, j],
          otherChoices([ROWS, ROWS], [i, j]).filter(([k, l]) => k !== l),
        ),
        config: setup(r, { start: [{ command: dialog('a', args) }] }),
        solve: [field(i), type(a), field(j), type(b), button('OK'), finish],
        miss: [field(i), type(b), field(j), type(a), button('OK'), finish],
      };
    },
  },
  {
    name: 'form-checks',
    apps: ['yad'],
    steps: 3,
    build(r, screen) {
      const labels = pickSome(r, r.words.items, 4),
        [i, j] = pickSome(r, [0, 1, 2, 3], 2);
      const args = formArgs(
        r,
        screen,
        'Options',
        { width: 260, height: 4 * 32 + 62 },
        labels.map((l) => `${l}:CHK`),
      );
      const box = (k: number): Move => click({ role: 'check box', name: labels[k]! });
      return {
        ...asking(
          ([k, l]) => [
            `Switch on "${labels[k]!}" and "${labels[l]!}", then press OK.`,
            dialogGave('a', labels.map((_, n) => (n === k || n === l ? 'TRUE|' : 'FALSE|')).join(''), 0),
          ],
          [i, j] as const,
          otherPairs(4, [i, j]),
        ),
        config: setup(r, { start: [{ command: dialog('a', args) }] }),
        solve: [box(i), box(j), button('OK'), finish],
        miss: [box(i), button('OK'), finish],
      };
    },
  },
  {
    name: 'form-login',
    apps: ['yad'],
    steps: 5,
    heldout: true,
    build(r, screen) {
      const [user, secret] = pickSome(r, r.words.texts, 2);
      const args = formArgs(r, screen, 'Login', { width: 320, height: 2 * 39 + 60 }, ['Name', 'Code:H']);
      return {
        instruction: `Log in with the name "${user}" and the code "${secret}".`,
        config: setup(r, { start: [{ command: dialog('a', args) }] }),
        evaluator: judgedBy(dialogGave('a', `${user}|${secret}|`, 0)),
        solve: [field(0), type(user), click({ role: 'password text' }), type(secret), button('OK'), finish],
        miss: [field(0), type(user), click({ role: 'password text' }), type(secret), button('Cancel'), finish],
      };
    },
  },
  {
    name: 'form-choice',
    apps: ['yad'],
    steps: 3,
    build(r, screen) {
      const rows = pickSome(r, r.words.items, 4),
        i = 1 + r.int(3),
        label = r.pick(r.words.fields);
      const args = [
        '--title=Choice',
        `--geometry=${geometry(place(r, screen, 300, 210))}`,
        '--form',
        '--separator=|',
        '--borders=4',
        `--field=${label}:CB`,
        '--button=OK:0',
        '--button=Cancel:1',
        rows.join('!'),
      ];
      const choose = (name: string): Move[] => [
        click({ role: 'combo box' }),
        click({ role: 'menu item', name }),
        button('OK'),
        finish,
      ];
      return {
        // The first is chosen already.
        ...asking(
          (k) => [
            `Choose "${rows[k]!}" from the drop-down list "${label}" and press OK.`,
            dialogGave('a', `${rows[k]!}|`, 0),
          ],
          i,
          others(4, i).slice(1),
        ),
        config: setup(r, { start: [{ command: dialog('a', args) }] }),
        solve: choose(rows[i]!),
        miss: choose(rows[i === 1 ? 2 : 1]!),
      };
    },
  },
  {
    name: 'scale-drag',
    apps: ['yad'],
    steps: 2,
    build(r, screen) {
      const start = 10 + r.int(60),
        at = place(r, screen, 360, 110, { width: screen.width - 60 });
      const args = [
        '--title=Volume',
        `--geometry=${geometry(at)}`,
        '--scale',
        '--min-value=0',
        '--max-value=100',
        `--value=${start}`,
        '--button=OK:0',
        '--button=Cancel:1',
      ];
      // The knob: 20 px wide, its travel 12 px inside the slider's ends, below the number.
      const knob: Where = async (s) => {
        const b = boxOf(await s.find({ role: 'slider' }));
        return { x: b.x + 11 + ((b.width - 24) * start) / 100 - 9, y: b.y + 33, width: 20, height: 20 };
      };
      const end: Where = async (s) => {
        const b = boxOf(await s.find({ role: 'slider' }));
        return { x: b.x + b.width + 4, y: b.y + 20, width: 36, height: 40 };
      };
      const back: Where = async (s) => {
        const b = boxOf(await s.find({ role: 'slider' }));
        return { x: b.x + b.width * 0.8, y: b.y + 20, width: 20, height: 40 };
      };
      return {
        instruction: 'Drag the slider all the way to the right and press OK.',
        config: setup(r, { start: [{ command: dialog('a', args) }] }),
        evaluator: judgedBy(dialogGave('a', '100', 0)),
        solve: [drag(knob, end), button('OK'), finish],
        miss: [drag(knob, back), button('OK'), finish],
      };
    },
  },
  {
    name: 'calendar-day',
    apps: ['yad'],
    steps: 2,
    build(r, screen) {
      const day = 2 + r.int(27),
        wrong = day > 20 ? day - 7 : day + 7,
        month = 1 + r.int(12),
        at = place(r, screen, 340, 248);
      const args = [
        '--title=Date',
        `--geometry=+${at.x}+${at.y}`,
        '--calendar',
        '--day=1',
        `--month=${month}`,
        '--year=2024',
        '--date-format=%d',
        '--button=OK:0',
        '--button=Cancel:1',
      ];
      const first = new Date(Date.UTC(2024, month - 1, 1)).getUTCDay() || 7;
      // A sheet of seven columns and six rows below two rows of headings; Sunday is first, and a month that begins on
      // one has a week before it.
      const on = (d: number): Move =>
        clickBox(async (s) => {
          const b = boxOf(await s.find({ role: 'calendar' })),
            k = first + d - 1,
            w = (b.width - 8) / 7,
            h = (b.height - 64) / 6;
          return { x: b.x + 4 + (k % 7) * w, y: b.y + 59 + Math.floor(k / 7) * h, width: w, height: h };
        });
      return {
        // The first is picked already, and not every month has the last ones.
        ...asking(
          (d) => [`Pick day "${d}" in the calendar and press OK.`, dialogGave('a', String(d).padStart(2, '0'), 0)],
          day,
          others(29, day).slice(2),
        ),
        config: setup(r, { start: [{ command: dialog('a', args) }] }),
        solve: [on(day), button('OK'), finish],
        miss: [on(wrong), button('OK'), finish],
      };
    },
  },
];
