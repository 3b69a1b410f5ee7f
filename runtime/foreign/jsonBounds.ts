/**
 * Bounds of JSON text of others, checked before it is parsed: parsing costs by values and depth, not by length alone.
 */
export interface JsonBounds {
  /** Objects and lists within one another. */
  readonly depth: number;
  /** Members and elements, all together. */
  readonly values: number;
}

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];

/**
 * Which bound a text exceeds, in words; undefined when none. One pass; text that is no JSON may pass, and fails when it
 * is parsed. Pure.
 */
export function beyondBounds(text: string, most: JsonBounds): string | undefined {
  let depth = 0,
    values = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === quote) {
      for (i++; i < text.length && text.charCodeAt(i) !== quote; i++) if (text.charCodeAt(i) === backslash) i++;
    } else if (c === 0x7b || c === 0x5b) {
      values++;
      if (++depth > most.depth) return `holds more than ${most.depth} lists and objects within one another`;
    } else if (c === 0x7d || c === 0x5d) depth--;
    else if (c === comma && ++values > most.values) return `holds more than ${most.values} values`;
  }
  return values > most.values ? `holds more than ${most.values} values` : undefined;
}
