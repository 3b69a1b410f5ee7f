import { Forward, skipBlanks } from './scan.js';

/**
 * The little XML that metrics read: flat settings files, one element inside another. Not a parser, but one pass over
 * the text, whatever is in it.
 */
const ENTITIES: ReadonlyMap<string, string> = new Map(
  Object.entries({ lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }),
);

export const unescapeXml = (s: string): string =>
  s.replace(
    /&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi,
    (all, hex: string | undefined, dec: string | undefined, name: string | undefined) => {
      const code = hex !== undefined ? Number.parseInt(hex, 16) : dec !== undefined ? Number(dec) : undefined;
      if (code !== undefined) return code <= 0x10ffff ? String.fromCodePoint(code) : all;
      return ENTITIES.get(name ?? '') ?? all;
    },
  );

/** Elements of a name with the given attributes: their inner text. Elements of that name must not nest. */
export function elements(xml: string, name: string, attributes: Readonly<Record<string, string>> = {}): string[] {
  const wanted = Object.entries(attributes),
    found: string[] = [];
  for (const e of elementsOf(withoutComments(xml), name)) {
    const has = attributesOf(e.attributes);
    if (wanted.every(([k, v]) => has.get(k) === v)) found.push(e.inner);
  }
  return found;
}
export const elementText = (
  xml: string,
  name: string,
  attributes: Readonly<Record<string, string>> = {},
): string | undefined => elements(xml, name, attributes).map(unescapeXml)[0];

const COMMENT = '<!--',
  COMMENT_END = '-->';

function withoutComments(xml: string): string {
  let out = '',
    at = 0;
  for (;;) {
    const start = xml.indexOf(COMMENT, at),
      end = start < 0 ? -1 : xml.indexOf(COMMENT_END, start + COMMENT.length);
    if (end < 0) return out + xml.slice(at);
    out += xml.slice(at, start);
    at = end + COMMENT_END.length;
  }
}

function* elementsOf(xml: string, name: string): Generator<{ readonly attributes: string; readonly inner: string }> {
  const open = `<${name}`,
    tagEnds = new Forward(xml, '>'),
    closings = new Closings(xml, name);
  for (let at = xml.indexOf(open); at >= 0;) {
    const nameEnd = at + open.length,
      blank = /\s/.test(xml[nameEnd] ?? ''),
      // Without attributes the tag ends right behind its name.
      end = blank ? tagEnds.from(nameEnd) : xml.startsWith('/>', nameEnd) ? nameEnd + 1 : nameEnd;
    let next = at + 1;
    if (end >= 0 && xml[end] === '>') {
      const empty = xml[end - 1] === '/' && end > nameEnd,
        attributes = blank ? xml.slice(nameEnd, empty ? end - 1 : end) : '',
        closing = empty ? undefined : closings.from(end + 1);
      if (empty) {
        yield { attributes, inner: '' };
        next = end + 1;
      } else if (closing) {
        yield { attributes, inner: xml.slice(end + 1, closing.start) };
        next = closing.end;
      }
    }
    at = xml.indexOf(open, next);
  }
}

/** Closing tags of a name, asked for at places that only grow. */
class Closings {
  readonly #xml: string;
  readonly #tag: string;
  #now: { readonly start: number; readonly end: number } | undefined;
  constructor(xml: string, name: string) {
    this.#xml = xml;
    this.#tag = `</${name}`;
    this.#now = this.#next(0);
  }
  from(place: number): { readonly start: number; readonly end: number } | undefined {
    if (this.#now && this.#now.start < place) this.#now = this.#next(place);
    return this.#now;
  }
  #next(place: number): { start: number; end: number } | undefined {
    for (let start = this.#xml.indexOf(this.#tag, place); start >= 0;) {
      const end = skipBlanks(this.#xml, start + this.#tag.length);
      if (this.#xml[end] === '>') return { start, end: end + 1 };
      start = this.#xml.indexOf(this.#tag, end);
    }
    return undefined;
  }
}

/** `name="value"` pairs of a tag, either quote; of a name given twice the last. */
function attributesOf(tag: string): Map<string, string> {
  const has = new Map<string, string>(),
    words = /[\w:.-]+/g,
    ends = { '"': new Forward(tag, '"'), "'": new Forward(tag, "'") };
  for (let word = words.exec(tag); word !== null; word = words.exec(tag)) {
    const equals = skipBlanks(tag, words.lastIndex);
    if (tag[equals] !== '=') continue;
    const at = skipBlanks(tag, equals + 1),
      quote = tag[at];
    if (quote !== '"' && quote !== "'") continue;
    const end = ends[quote].from(at + 1);
    if (end < 0) continue;
    has.set(word[0], unescapeXml(tag.slice(at + 1, end)));
    words.lastIndex = end + 1;
  }
  return has;
}
