// Tables of generated pages.

const cell = (text) => String(text).replaceAll('|', '\\|').replaceAll('\n', ' ');
export const table = (head, rows) =>
  [head, head.map(() => '---'), ...rows].map((r) => `| ${r.map(cell).join(' | ')} |`).join('\n');
export const code = (text) => `\`${text}\``;
