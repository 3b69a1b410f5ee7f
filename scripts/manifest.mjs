// `node scripts/manifest.mjs`: writes what package.json and package.nls.json say of commands (extension/commandTable.ts)
// and of panels that are restored (webview/protocol.ts). With --check: fails when they are not current.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { load } from './lib/load.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const titleKey = (id) => id.replace(/^dartStudio\./, 'command.');

/** The manifest with every command and page; everything else stays as it is, where it is. */
export function manifestOf(manifest, commands, kinds) {
  const panels = kinds.map((kind) => `onWebviewPanel:dartStudio.${kind}`),
    { contributes: c } = manifest;
  return {
    ...manifest,
    activationEvents: [...panels, ...manifest.activationEvents.filter((e) => !e.startsWith('onWebviewPanel:'))],
    contributes: {
      ...c,
      commands: commands.map(({ id, shortTitle, icon }) => ({
        command: id,
        title: `%${titleKey(id)}%`,
        category: '%category%',
        ...(shortTitle === undefined ? {} : { shortTitle: `%${titleKey(id)}.short%` }),
        ...(icon === undefined ? {} : { icon: `$(${icon})` }),
      })),
      menus: { ...c.menus, commandPalette: commands.map(({ id, palette }) => ({ command: id, when: palette })) },
    },
  };
}
/** The manifest's words with every title of a command, where titles stand now. */
export function wordsOf(words, commands) {
  const entries = Object.entries(words),
    isTitle = ([key]) => key.startsWith('command.'),
    at = entries.findIndex(isTitle),
    titles = commands.flatMap(({ id, title, shortTitle }) => [
      [titleKey(id), title],
      ...(shortTitle === undefined ? [] : [[`${titleKey(id)}.short`, shortTitle]]),
    ]);
  return Object.fromEntries([...entries.slice(0, at), ...titles, ...entries.slice(at).filter((e) => !isTitle(e))]);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { commandTable } = await load('extension/commandTable.ts'),
    { pageMethods } = await load('webview/protocol.ts'),
    commands = Object.values(commandTable);
  for (const [name, made] of [
    ['package.json', (was) => manifestOf(was, commands, Object.keys(pageMethods))],
    ['package.nls.json', (was) => wordsOf(was, commands)],
  ]) {
    const file = join(root, name),
      text = await readFile(file, 'utf8'),
      now = `${JSON.stringify(made(JSON.parse(text)), null, 2)}\n`;
    if (text === now) continue;
    if (!process.argv.includes('--check')) await writeFile(file, now);
    else {
      console.error(`${name} is not current: npm run generate`);
      process.exitCode = 1;
    }
  }
}
