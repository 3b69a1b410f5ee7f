/** What axe finds in a page that is shown, in each of four themes. */
import type { Cockpit } from './cockpit.js';
import type { Frame } from './playwright.js';
import { axeSource } from './rig.js';
import { pictures, violations, when } from './ui.js';

/** As VS Code calls it, as our pictures do, and as a page learns of it. */
export const themes = [
  ['Dark Modern', 'dark', 'vscode-dark'],
  ['Light Modern', 'light', 'vscode-light'],
  ['Default High Contrast', 'hc', 'vscode-high-contrast'],
  ['Default High Contrast Light', 'hc-light', 'vscode-high-contrast-light'],
] as const;

/** One line each; the first theme is the one that is left. */
export async function foundInThemes(c: Cockpit, page: Frame, what: string): Promise<readonly string[]> {
  const axe = axeSource(),
    found: string[] = [];
  for (const [theme, name, kind] of [...themes.slice(1), themes[0]]) {
    await c.setTheme(theme);
    await when(page, `document.body.dataset.vscodeThemeKind === '${kind}'`);
    await pictures(page);
    await c.picture(`${what}-${name}`);
    for (const v of await violations(page, axe))
      found.push(`${what}, ${name}: ${v.id} (${v.impact}): ${v.nodes.slice(0, 3).join(' | ')}`);
  }
  return found;
}
