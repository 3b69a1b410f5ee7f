import { createHash } from 'node:crypto';

/**
 * A page in one file that a stranger may have filled: what it shows comes from desktops, task files and models. Every
 * text goes through `text`, and the policy that the file carries in itself allows no script and no style but the two
 * whose hashes it names, and no request at all.
 */
export interface Page {
  readonly title: string;
  readonly body: string;
  readonly style: string;
  /** Script of the page; without one no script can run. */
  readonly script?: string;
}

/** Characters that reorder or hide text around them, and those no page can have. */
const INVISIBLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u202a-\u202e\u2066-\u2069]/g;
const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Any value as text, in an element or in a quoted attribute. */
export const text = (value: unknown): string =>
  String(value ?? '')
    .replace(INVISIBLE, '\ufffd')
    .replace(/[&<>"']/g, (c) => ENTITIES[c]!);

/** A number of a record, which a file may have made something else of. */
export const finite = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined;
/** A coordinate of a drawing; a value that is no number becomes 0. */
export const coordinate = (value: unknown): string => String(Math.round((finite(value) ?? 0) * 100) / 100);

/** A number with at most so many significant digits. */
export function figure(value: unknown, digits = 3): string {
  const n = finite(value);
  return n === undefined ? '' : String(Number(n.toPrecision(digits)));
}

/** Cells are HTML already. */
export function table(caption: string, head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '';
  const headings = head.map((h) => `<th scope="col">${text(h)}</th>`).join('');
  return `<div class="wide"><table><caption>${text(caption)}</caption><thead><tr>${headings}</tr></thead><tbody>${rows
    .map((r) => `<tr>${r.map((c, i) => (i === 0 ? `<th scope="row">${c}</th>` : `<td>${c}</td>`)).join('')}</tr>`)
    .join('')}</tbody></table></div>`;
}
/** Names and what they are; pairs without a value are left out. */
export const facts = (pairs: readonly (readonly [string, string | undefined])[]): string =>
  `<dl>${pairs
    .filter((p): p is readonly [string, string] => p[1] !== undefined && p[1] !== '')
    .map(([name, value]) => `<div><dt>${text(name)}</dt><dd>${value}</dd></div>`)
    .join('')}</dl>`;

const hashOf = (source: string): string => `'sha256-${createHash('sha256').update(source).digest('base64')}'`;

export function pageText(p: Page): string {
  const policy = [
    "default-src 'none'",
    'img-src data:',
    `style-src ${hashOf(p.style)}`,
    ...(p.script === undefined ? [] : [`script-src ${hashOf(p.script)}`]),
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${text(p.title)}</title>
<style>${p.style}</style>
</head>
<body>
${p.body}
${p.script === undefined ? '' : `<script>${p.script}</script>\n`}</body>
</html>
`;
}
