import type { Random } from '../../../domain/index.js';

/**
 * The words of the suite. Few, short and unlike each other, and the same ones in every template: a small policy must
 * learn to read each from pixels, and what it learns in one template should help in all. Capitalised everywhere, so a
 * word has one look.
 */
export interface Lexicon {
  readonly items: readonly string[];
  readonly actions: readonly string[];
  /** Names of fields. */
  readonly fields: readonly string[];
  /** Words to be typed. They are copied from the instruction, so they need not be read. */
  readonly texts: readonly string[];
  /** Titles of windows that an instruction names. */
  readonly titles: readonly string[];
}

/** The words that training shows: those of version 0.1. */
export const TRAINED: Lexicon = {
  items: ['Apple', 'Lemon', 'Mango', 'Grape', 'Peach', 'Melon', 'Olive', 'Kiwi', 'Plum', 'Berry', 'Fig', 'Nut'],
  actions: ['Save', 'Open', 'Copy', 'Move', 'Send', 'Help', 'Stop', 'Next'],
  fields: ['Name', 'City', 'Team', 'Code'],
  texts: [
    'Anna',
    'Bruno',
    'Clara',
    'David',
    'Emma',
    'Felix',
    'Greta',
    'Hugo',
    'Iris',
    'Jonas',
    'Paris',
    'Rome',
    'Oslo',
    'Lima',
    'Cairo',
    'Delhi',
    'tulip',
    'river',
    'stone',
    'cloud',
    'piano',
    'tiger',
    'hotel',
    'lamp',
  ],
  titles: ['Fruit', 'Stock', 'Order'],
};

/**
 * Words that no training task, reading lesson or vocabulary has: `dev` for tuning, `test` for reporting. None of them is
 * in what the applications show either.
 */
export const HELD_OUT: Readonly<Record<'dev' | 'test', Lexicon>> = {
  dev: {
    items: ['Lychee', 'Carrot', 'Onion', 'Basil', 'Garlic', 'Ginger', 'Radish', 'Celery', 'Walnut', 'Pecan'],
    actions: ['Merge', 'Trim', 'Vote', 'Flip', 'Draft', 'Boost'],
    fields: ['Email', 'Shape', 'Floor', 'Score'],
    texts: [
      'Oscar',
      'Petra',
      'Sven',
      'Tilda',
      'Accra',
      'Hanoi',
      'Turin',
      'Dakar',
      'bottle',
      'silver',
      'marble',
      'saddle',
    ],
    titles: ['Shelf', 'Basket', 'Depot'],
  },
  test: {
    items: [
      'Cherry',
      'Papaya',
      'Guava',
      'Quince',
      'Tomato',
      'Pepper',
      'Cocoa',
      'Almond',
      'Cashew',
      'Barley',
      'Clove',
      'Thyme',
    ],
    actions: ['Share', 'Mute', 'Skip', 'Rate', 'Pause', 'Retry', 'Block', 'Reply'],
    fields: ['Phone', 'Street', 'Grade', 'Level'],
    texts: [
      'Kenji',
      'Laura',
      'Nadia',
      'Ravi',
      'Simon',
      'Wanda',
      'Milan',
      'Quito',
      'Seoul',
      'Tunis',
      'candle',
      'forest',
      'garden',
      'violin',
      'pebble',
      'rocket',
    ],
    titles: ['Cargo', 'Pantry', 'Market'],
  },
};
export const wordsOf = (l: Lexicon): readonly string[] => [
  ...l.items,
  ...l.actions,
  ...l.fields,
  ...l.texts,
  ...l.titles,
];

/** Words that differ by a letter: as many of each kind as a template shows at once. */
const NEAR = { items: 14, actions: 8, fields: 4, titles: 3 } as const;

/**
 * One word of each kind and others that are nearly it (a letter more, less, other, or two changed over), none of which
 * is a word of any lexicon: whoever does not read every letter presses the wrong one. Texts to be typed stay as they
 * are.
 */
export function nearLexicon(of: Lexicon, r: Random): Lexicon {
  const taken = new Set([TRAINED, HELD_OUT.dev, HELD_OUT.test].flatMap(wordsOf).map((w) => w.toLowerCase()));
  const near = (words: readonly string[], count: number): string[] => {
    const root = r.pick(words),
      out = [root];
    while (out.length < count) {
      const w = almost(root, r);
      if (w.length < 3 || taken.has(w.toLowerCase())) continue;
      taken.add(w.toLowerCase());
      out.push(w);
    }
    return out;
  };
  return {
    items: near(of.items, NEAR.items),
    actions: near(of.actions, NEAR.actions),
    fields: near(of.fields, NEAR.fields),
    texts: of.texts,
    titles: near(of.titles, NEAR.titles),
  };
}

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
/** The first letter stays, so that the word stays capitalised. */
function almost(word: string, r: Random): string {
  const at = 1 + r.int(word.length - 1),
    letter = LETTERS[r.int(LETTERS.length)]!,
    [before, after] = [word.slice(0, at), word.slice(at)];
  switch (r.int(4)) {
    case 0:
      return before + letter + after;
    case 1:
      return before + after.slice(1);
    case 2:
      return before + letter + after.slice(1);
    default:
      return before + after.slice(1, 2) + after.slice(0, 1) + after.slice(2);
  }
}
