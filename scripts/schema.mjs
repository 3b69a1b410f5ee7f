// Writes the JSON schema of run files, as the runtime prints it, to where the extension ships it from
// (media/run.schema.json). With --check: fails when that file is not what the runtime would print.
import { readFile, writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { load } from './lib/load.mjs';

export const target = new URL('../media/run.schema.json', import.meta.url);
/** From the sources: the bundle in dist/ may be older. */
export async function runSchema() {
  const { jsonSchema } = await load('runtime/run/backends/schema.ts');
  return JSON.stringify(jsonSchema(), null, 2) + '\n';
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const text = await runSchema();
  if (!process.argv.includes('--check')) await writeFile(target, text);
  else if ((await readFile(target, 'utf8').catch(() => '')) !== text) {
    console.error('media/run.schema.json is not current: npm run generate');
    process.exitCode = 1;
  }
}
