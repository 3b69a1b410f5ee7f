import type { Size } from '../../../../domain/index.js';
import type { Instance, Scene, Template } from '../kit.js';
import { geometry, pickSome, place, setup } from '../kit.js';
import type { Move } from '../moves.js';
import { button, finish, type } from '../moves.js';
import { asking, others } from '../siblings.js';
import { dialog, dialogGave } from './dialogs.js';
import { field } from './forms.js';

/** Texts that only the screen has: what is typed has to be read. */

const TWO_FIGURES = Array.from({ length: 90 }, (_, n) => 10 + n);

/**
 * Fields that cannot be changed, and an empty one: what stands in the i-th goes into it. The instruction does not say
 * the text, which has to be read.
 */
function copied(
  r: Scene,
  screen: Size,
  instruction: (label: string) => string,
  labels: readonly string[],
  texts: readonly string[],
  i: number,
): Instance {
  const args = [
    '--title=Copy',
    `--geometry=${geometry(place(r, screen, 300, 4 * 39 + 60))}`,
    '--form',
    '--separator=|',
    '--borders=4',
    ...labels.map((l) => `--field=${l}:RO`),
    '--field=Same',
    '--button=OK:0',
    '--button=Cancel:1',
    ...texts,
  ];
  const values = (copy: string): string => [...texts, copy].map((t) => `${t}|`).join(''),
    fill = (text: string): Move[] => [field(labels.length), type(text), button('OK'), finish];
  return {
    ...asking((k) => [instruction(labels[k]!), dialogGave('a', values(texts[k]!), 0)], i, others(labels.length, i)),
    config: setup(r, { start: [{ command: dialog('a', args) }] }),
    solve: fill(texts[i]!),
    miss: fill(texts[(i + 1) % texts.length]!),
  };
}

export const copyTemplates: readonly Template[] = [
  {
    name: 'form-copy-number',
    apps: ['yad'],
    steps: 3,
    build(r, screen) {
      const labels = pickSome(r, r.words.items, 3),
        numbers = pickSome(r, TWO_FIGURES, 3).map(String),
        i = r.int(3);
      return copied(
        r,
        screen,
        (label) => `Copy the number of "${label}" into the last field and press OK.`,
        labels,
        numbers,
        i,
      );
    },
  },
  {
    name: 'form-copy-name',
    apps: ['yad'],
    steps: 3,
    build(r, screen) {
      const labels = r.shuffle(r.words.fields).slice(0, 3),
        names = pickSome(r, r.words.texts, 3),
        i = r.int(3);
      return copied(
        r,
        screen,
        (label) => `Copy what stands in the field "${label}" into the last one and press OK.`,
        labels,
        names,
        i,
      );
    },
  },
];
