/**
 * The characters that the embedded policy can read. A column of the screen shows one of them or nothing; texts are
 * spelled in these classes. Checkpoints depend on the order.
 */
export const BLANK = 0;
/** The edge of a text: what stands before its first character and after its last one. */
export const EDGE = 1;
export const SPACE = 2;

const SIGNS = ".,:;!?'-_+*/=()>@&";
const CHARACTERS = ` abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789${SIGNS}`;
/** Classes of a column, `BLANK` and `EDGE` among them. */
export const CLASSES = SPACE + CHARACTERS.length;

const CLASS_OF = new Map([...CHARACTERS].map((c, i) => [c, SPACE + i]));
const LOWER = CLASS_OF.get('a')!,
  UPPER = CLASS_OF.get('A')!,
  LETTERS = 26;

/** The class of one character; undefined for one that cannot be read. */
export const classOfCharacter = (c: string): number | undefined => CLASS_OF.get(c);
/** The character of a class; empty for `BLANK` and `EDGE`. */
export const characterOfClass = (k: number): string => (k >= SPACE && k < CLASSES ? CHARACTERS[k - SPACE]! : '');
/** The same letter in the other case; itself where there is none. */
export function otherCase(k: number): number {
  if (k >= LOWER && k < LOWER + LETTERS) return k + UPPER - LOWER;
  return k >= UPPER && k < UPPER + LETTERS ? k + LOWER - UPPER : k;
}

/** A text in classes, at most `most` of them; characters that cannot be read are left out. */
export function spell(text: string, most: number): number[] {
  const out: number[] = [];
  for (const c of text) {
    const k = CLASS_OF.get(c);
    if (k !== undefined && out.length < most) out.push(k);
  }
  return out;
}
