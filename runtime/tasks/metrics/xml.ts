/**
 * The little XML that metrics read: flat settings files, one element inside another. Not a parser; regular expressions
 * on well-formed text.
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
  const found: string[] = [];
  for (const m of xml
    .replace(/<!--[^]*?-->/g, '')
    .matchAll(new RegExp(`<${name}(\\s[^>]*?)?(?:/>|>([^]*?)</${name}\\s*>)`, 'g'))) {
    const has = Object.fromEntries(
      [...(m[1] ?? '').matchAll(/([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g)].map((a) => [
        a[1]!,
        unescapeXml(a[2] ?? a[3] ?? ''),
      ]),
    );
    if (Object.entries(attributes).every(([k, v]) => has[k] === v)) found.push(m[2] ?? '');
  }
  return found;
}
export const elementText = (
  xml: string,
  name: string,
  attributes: Readonly<Record<string, string>> = {},
): string | undefined => elements(xml, name, attributes).map(unescapeXml)[0];
