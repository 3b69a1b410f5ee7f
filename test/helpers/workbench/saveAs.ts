import { existsSync } from 'node:fs';
import type { Page } from './playwright.js';
import { until } from './workbench.js';

/** Answers VS Code's own dialog that opens a file. */
export async function openFile(page: Page, title: string, file: string): Promise<void> {
  const widget = page
      .locator('.quick-input-widget')
      .filter({ has: page.locator('.quick-input-title', { hasText: new RegExp(`^${title}$`) }) }),
    field = widget.locator('.quick-input-box input');
  await widget.waitFor();
  await until(async () => {
    if (!(await widget.isVisible())) return true;
    if ((await field.inputValue()) === file) await field.press('Enter', { timeout: 2000 }).catch(() => undefined);
    else await field.fill(file, { timeout: 2000 }).catch(() => undefined);
    return false;
  }, `${file} is chosen`);
}
/** Answers VS Code's own dialog of files, which proposes a place and a name; resolves when the file is there. */
export async function saveAs(page: Page, title: string, file: string): Promise<void> {
  const widget = page.locator('.quick-input-widget').filter({ hasText: title }),
    field = widget.locator('.quick-input-box input');
  await widget.waitFor();
  await until(async () => {
    if (existsSync(file)) return true;
    // It fills its own field once it has read where it begins.
    if (await widget.isVisible()) {
      if ((await field.inputValue()) === file) await field.press('Enter', { timeout: 2000 }).catch(() => undefined);
      else await field.fill(file, { timeout: 2000 }).catch(() => undefined);
    }
    return false;
  }, `${file} is saved`);
}
