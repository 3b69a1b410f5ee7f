// The icons of the pages: of VS Code's icon font only those that a page's text can name. The whole font is a fiftieth of
// the VSIX.
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import subsetFont from 'subset-font';

const FROM = 'node_modules/@vscode/codicons/dist';
const RULE = /^\.codicon-([a-z0-9-]+):before \{ content: "\\([0-9a-f]+)" \}\n?/gm;

/** Names of icons that are words of these texts; more than are used, never fewer, as no name is put together. */
export function iconsIn(css, texts) {
  const words = new Set(texts.flatMap((t) => t.match(/[a-z0-9]+(?:-[a-z0-9]+)*/g) ?? []));
  return new Map([...css.matchAll(RULE)].filter(([, name]) => words.has(name)).map(([, name, at]) => [name, at]));
}

/** The style sheet without the rules of other icons. */
export const sheetOf = (css, icons) =>
  `/* Changed for DART Studio: only the icons that its pages use. */\n${css.replace(RULE, (rule, name) => (icons.has(name) ? rule : ''))}`;

/** Writes both files for the pages in `sources`, folders of TypeScript. */
export async function writeIcons(sources, to) {
  const texts = sources.flatMap((dir) =>
      readdirSync(dir, { recursive: true, withFileTypes: true })
        .filter((e) => e.isFile() && e.name.endsWith('.ts'))
        .map((e) => readFileSync(join(e.parentPath ?? e.path, e.name), 'utf8')),
    ),
    css = await readFile(join(FROM, 'codicon.css'), 'utf8'),
    icons = iconsIn(css, texts),
    glyphs = [...icons.values()].map((at) => String.fromCodePoint(parseInt(at, 16))).join('');
  if (icons.size === 0) throw new Error(`${FROM}/codicon.css has no icons that the pages name: its form has changed.`);
  await mkdir(to, { recursive: true });
  await writeFile(join(to, 'codicon.css'), sheetOf(css, icons));
  await writeFile(
    join(to, 'codicon.ttf'),
    await subsetFont(await readFile(join(FROM, 'codicon.ttf')), glyphs, { targetFormat: 'truetype' }),
  );
}
