/**
 * The words of the suite. Few, short and unlike each other, and the same ones in every template: a small policy must
 * learn to read each from pixels, and what it learns in one template should help in all. Capitalised everywhere, so a
 * word has one look.
 */
export const ITEMS = [
  'Apple',
  'Lemon',
  'Mango',
  'Grape',
  'Peach',
  'Melon',
  'Olive',
  'Kiwi',
  'Plum',
  'Berry',
  'Fig',
  'Nut',
] as const;
export const ACTIONS = ['Save', 'Open', 'Copy', 'Move', 'Send', 'Help', 'Stop', 'Next'] as const;
export const FIELDS = ['Name', 'City', 'Team', 'Code'] as const;
/** Words to be typed. They are copied from the instruction, so they need not be read. */
export const TEXTS = [
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
] as const;
