import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';

const { iconsIn, sheetOf } = (await import(pathToFileURL('scripts/lib/icons.mjs').href)) as {
    readonly iconsIn: (css: string, texts: readonly string[]) => Map<string, string>;
    readonly sheetOf: (css: string, icons: ReadonlyMap<string, string>) => string;
  },
  css = readFileSync('node_modules/@vscode/codicons/dist/codicon.css', 'utf8'),
  sources = readdirSync('webview', { recursive: true, withFileTypes: true })
    .filter((e) => e.isFile() && e.name.endsWith('.ts'))
    .map((e) => readFileSync(join(e.parentPath, e.name), 'utf8'));

describe('icons of the pages', () => {
  it('that a page names by a literal are all shipped', () => {
    const icons = iconsIn(css, sources),
      named = sources.flatMap((s) => [...s.matchAll(/\bicon\('([a-z0-9-]+)/g)].map((m) => m[1]!)),
      sheet = sheetOf(css, icons);
    expect(new Set(named).size).toBeGreaterThan(20);
    for (const name of named) expect(sheet, name).toContain(`.codicon-${name}:before {`);
  });
  it('that no page names are left out, and what every icon needs stays', () => {
    const sheet = sheetOf(css, iconsIn(css, ["icon(busy ? 'loading codicon-modifier-spin' : 'check')"]));
    expect([...sheet.matchAll(/^\.codicon-([\w-]+):before/gm)].map((m) => m[1]).sort()).toEqual(['check', 'loading']);
    for (const kept of ['@font-face', "[class*='codicon-']", '.codicon-modifier-spin']) expect(sheet).toContain(kept);
  });
});
