import { FIELDS, ITEMS, TEXTS } from '../lexicon.js';
import type { Template } from '../kit.js';
import { geometry, judgedBy, pickSome, place, setup } from '../kit.js';
import { button, click, enterText, finish, type } from '../moves.js';
import type { Move } from '../moves.js';
import { dialog, dialogGave } from './dialogs.js';

/** Dialogs to be filled in. */

/** Row `k` of a form of text fields: they all have role `text` and lie one below the other. */
const field = (k: number): Move => click({ role: 'text', nth: k });

export const formTemplates: readonly Template[] = [
  {
    name: 'entry-type', apps: ['yad'], steps: 2,
    build(r, screen) {
      const [word, other] = pickSome(r, TEXTS, 2) as [string, string], label = r.pick(FIELDS);
      const args = [`--title=${label}`, `--geometry=${geometry(place(r, screen, 280, 96))}`, '--entry', `--entry-label=${label}`, '--borders=8', '--button=OK:0', '--button=Cancel:1'];
      return { instruction: `Type "${word}" into the field and press OK.`, config: setup({ start: [{ command: dialog('a', args) }] }),
        evaluator: judgedBy(dialogGave('a', word, 0)), solve: [type(word), button('OK'), finish], miss: [type(other), button('OK'), finish] };
    },
  },
  {
    name: 'entry-enter', apps: ['yad'], steps: 1,
    build(r, screen) {
      const [word, other] = pickSome(r, TEXTS, 2) as [string, string], label = r.pick(FIELDS);
      const args = [`--title=${label}`, `--geometry=${geometry(place(r, screen, 280, 96))}`, '--entry', `--entry-label=${label}`, '--borders=8', '--button=OK:0', '--button=Cancel:1'];
      return { instruction: `Enter "${word}" and confirm with the Enter key.`, config: setup({ start: [{ command: dialog('a', args) }] }),
        evaluator: judgedBy(dialogGave('a', word, 0)), solve: [enterText(word), finish], miss: [enterText(other), finish] };
    },
  },
  {
    name: 'form-one', apps: ['yad'], steps: 3,
    build(r, screen) {
      const labels = r.shuffle(FIELDS).slice(0, 3), i = r.int(3), [word] = pickSome(r, TEXTS, 1) as [string];
      const args = ['--title=Form', `--geometry=${geometry(place(r, screen, 300, 3 * 39 + 60))}`, '--form', '--separator=|', '--borders=4', ...labels.map((l) => `--field=${l}`), '--button=OK:0', '--button=Cancel:1'];
      const values = (k: number): string => labels.map((_, n) => n === k ? `${word}|` : '|').join('');
      return { instruction: `Write "${word}" into the field "${labels[i]!}" and press OK.`, config: setup({ start: [{ command: dialog('a', args) }] }),
        evaluator: judgedBy(dialogGave('a', values(i), 0)), solve: [field(i), type(word), button('OK'), finish], miss: [field((i + 1) % 3), type(word), button('OK'), finish] };
    },
  },
  {
    name: 'form-two', apps: ['yad'], steps: 5,
    build(r, screen) {
      const labels = r.shuffle(FIELDS).slice(0, 3), [i, j] = pickSome(r, [0, 1, 2], 2) as [number, number], [a, b] = pickSome(r, TEXTS, 2) as [string, string];
      const args = ['--title=Form', `--geometry=${geometry(place(r, screen, 300, 3 * 39 + 60))}`, '--form', '--separator=|', '--borders=4', ...labels.map((l) => `--field=${l}`), '--button=OK:0', '--button=Cancel:1'];
      const values = labels.map((_, n) => n === i ? `${a}|` : n === j ? `${b}|` : '|').join('');
      return { instruction: `Set "${labels[i]!}" to "${a}" and "${labels[j]!}" to "${b}", then press OK.`, config: setup({ start: [{ command: dialog('a', args) }] }),
        evaluator: judgedBy(dialogGave('a', values, 0)),
        solve: [field(i), type(a), field(j), type(b), button('OK'), finish], miss: [field(i), type(b), field(j), type(a), button('OK'), finish] };
    },
  },
  {
    name: 'form-checks', apps: ['yad'], steps: 3,
    build(r, screen) {
      const labels = pickSome(r, ITEMS, 4), [i, j] = pickSome(r, [0, 1, 2, 3], 2) as [number, number];
      const args = ['--title=Options', `--geometry=${geometry(place(r, screen, 260, 4 * 32 + 62))}`, '--form', '--separator=|', '--borders=4', ...labels.map((l) => `--field=${l}:CHK`), '--button=OK:0', '--button=Cancel:1'];
      const box = (k: number): Move => click({ role: 'check box', name: labels[k]! });
      return { instruction: `Switch on "${labels[i]!}" and "${labels[j]!}", then press OK.`, config: setup({ start: [{ command: dialog('a', args) }] }),
        evaluator: judgedBy(dialogGave('a', labels.map((_, n) => n === i || n === j ? 'TRUE|' : 'FALSE|').join(''), 0)),
        solve: [box(i), box(j), button('OK'), finish], miss: [box(i), button('OK'), finish] };
    },
  },
];
