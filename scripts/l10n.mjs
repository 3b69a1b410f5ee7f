// Collects the messages of the extension and of its pages, t('…'), and those that the daemon sends to pages,
// message('…'), into l10n/bundle.l10n.json: what translators start
// from. With --check: fails when it is not current.
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('..', import.meta.url));
export const target = join(root, 'l10n', 'bundle.l10n.json');

/** Where messages stand, and the function that marks them there. */
const places = [
  ['extension', 't'],
  ['webview', 't'],
  ['runtime/data/curation', 'message'],
  ['runtime/domain', 'message'],
];
/** First arguments of calls of these functions; one that is no literal cannot be translated and is named. */
export async function messages() {
  const found = new Set(),
    wrong = [];
  for (const [folder, mark] of places)
    for (const name of await readdir(join(root, folder), { recursive: true })) {
      if (!name.endsWith('.ts')) continue;
      const source = ts.createSourceFile(
        name,
        await readFile(join(root, folder, name), 'utf8'),
        ts.ScriptTarget.Latest,
        true,
      );
      const visit = (n) => {
        if (ts.isCallExpression(n) && ts.isIdentifier(n.expression) && n.expression.text === mark) {
          const [a] = n.arguments;
          if (a && ts.isStringLiteral(a)) found.add(a.text);
          else wrong.push(`${folder}/${name}:${source.getLineAndCharacterOfPosition(n.pos).line + 1}`);
        }
        ts.forEachChild(n, visit);
      };
      visit(source);
    }
  return { messages: [...found].sort(), wrong };
}
export const bundle = (all) => JSON.stringify(Object.fromEntries(all.map((m) => [m, m])), null, 2) + '\n';

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { messages: all, wrong } = await messages();
  for (const w of wrong) {
    console.error(`${w}: a message needs a plain string literal`);
    process.exitCode = 1;
  }
  if (!process.argv.includes('--check')) await writeFile(target, bundle(all));
  else if ((await readFile(target, 'utf8').catch(() => '')) !== bundle(all)) {
    console.error('l10n/bundle.l10n.json is not current: npm run generate');
    process.exitCode = 1;
  }
}
