import type { Template } from '../kit.js';
import { geometry, pickSome, place, setup } from '../kit.js';
import type { Move } from '../moves.js';
import { button, click, finish, type } from '../moves.js';
import { asking, otherPairs, others } from '../siblings.js';
import { dialog, dialogGave, listArgs, row } from './dialogs.js';
import { field } from './forms.js';

/** Dialogs one after another, each with something to fill in or choose. */

export const wizardTemplates: readonly Template[] = [
  {
    name: 'wizard',
    apps: ['yad'],
    steps: 5,
    build(r, screen) {
      const word = r.pick(r.words.texts),
        rows = pickSome(r, r.words.items, 4),
        i = 1 + r.int(3);
      const ask = [
        '--title=Name',
        `--geometry=${geometry(place(r, screen, 280, 96))}`,
        '--entry',
        '--entry-label=Name',
        '--borders=8',
        '--button=Next:0',
        '--button=Cancel:1',
      ];
      const done = [
        '--title=Done',
        `--geometry=${geometry(place(r, screen, 250, 90))}`,
        '--text=All done?',
        '--borders=8',
        '--buttons-layout=center',
        '--button=Yes:0',
        '--button=No:1',
      ];
      const steps = [dialog('a', ask), dialog('b', listArgs(r, screen, 'Fruit', rows)), dialog('c', done)];
      const go = (answer: string): Move[] => [
        type(word),
        button('Next'),
        row(rows[i]!),
        button('OK'),
        button(answer),
        finish,
      ];
      return {
        ...asking(
          (k) => [
            `Enter "${word}" and press Next, select "${rows[k]!}" and press OK, then answer "Yes".`,
            dialogGave('a', word, 0),
            dialogGave('b', rows[k]!, 0),
            dialogGave('c', '', 0),
          ],
          i,
          others(4, i).slice(1),
        ),
        config: setup(r, { start: [{ command: steps.join('; ') }] }),
        solve: go('Yes'),
        miss: go('No'),
      };
    },
  },
  {
    name: 'survey',
    apps: ['yad'],
    steps: 11,
    build(r, screen) {
      const labels = pickSome(r, r.words.fields, 3),
        [a, b, c] = pickSome(r, r.words.texts, 3),
        rows = pickSome(r, r.words.items, 5),
        [i, j] = pickSome(r, [0, 1, 2, 3, 4], 2).sort();
      const form = [
        '--title=Form',
        `--geometry=${geometry(place(r, screen, 300, 3 * 39 + 60))}`,
        '--form',
        '--separator=|',
        '--borders=4',
        ...labels.map((l) => `--field=${l}`),
        '--button=OK:0',
        '--button=Cancel:1',
      ];
      const mark = (k: number): Move => click({ role: 'table cell', name: '', nth: k });
      const done = [
        '--title=Sure',
        `--geometry=${geometry(place(r, screen, 250, 90))}`,
        '--text=Send it?',
        '--borders=8',
        '--buttons-layout=center',
        '--button=Send:0',
        '--button=Stop:1',
      ];
      const fill = (words: readonly string[]): Move[] => words.flatMap((w, k) => [field(k), type(w)]);
      const go = (words: readonly string[]): Move[] => [
        ...fill(words),
        button('OK'),
        mark(i),
        mark(j),
        button('OK'),
        button('Send'),
        finish,
      ];
      return {
        ...asking(
          ([k, l]) => [
            `Fill in "${labels[0]!}" "${a}", "${labels[1]!}" "${b}", "${labels[2]!}" "${c}", OK; tick "${rows[k]!}" and "${rows[l]!}", OK; then "Send".`,
            dialogGave('a', `${a}|${b}|${c}|`, 0),
            dialogGave('b', `${rows[k]!}\n${rows[l]!}`, 0),
            dialogGave('c', '', 0),
          ],
          [i, j] as const,
          otherPairs(5, [i, j]),
        ),
        config: setup(r, {
          start: [
            {
              command: [
                dialog('a', form),
                dialog('b', listArgs(r, screen, 'Several', rows, { kind: 'checklist' })),
                dialog('c', done),
              ].join('; '),
            },
          ],
        }),
        solve: go([a, b, c]),
        miss: go([a, c, b]),
      };
    },
  },
];
