/** The templates of `npm run quickstart`: learnable by the small policy on two cores, over six applications. */
export const QUICKSTART_FAMILIES: readonly string[] = [
  'desk/press-button',
  'desk/press-grid',
  'desk/press-two',
  'desk/press-order',
  'desk/list-pick',
  'desk/list-confirm',
  'desk/list-cancel',
  'desk/form-one',
  'desk/form-choice',
  'desk/calendar-day',
  'desk/wizard',
  'desk/note-save',
  'desk/note-replace',
  'desk/note-copy',
  'desk/calc-copy',
  'desk/file-rename',
  'desk/file-delete',
  'desk/file-drag',
  'desk/folder-new',
  'desk/term-touch',
  'desk/window-move',
];

/** Those of runs that began before run.json held them. */
export const EARLIER_QUICKSTART_FAMILIES: readonly string[] = [
  ...QUICKSTART_FAMILIES.filter((f) => f !== 'desk/press-order' && f !== 'desk/file-drag'),
  'desk/entry-type',
  'desk/note-menu-save',
];
