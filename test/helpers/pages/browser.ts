import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser, Chromium } from '../workbench/playwright.js';

type Part = { readonly ok: true; readonly path: string } | { readonly ok: false; readonly why: string };
export interface RealBrowser {
  readonly browser: Browser;
  /** axe-core, to evaluate in a page. */
  readonly axe: string;
}

/** Playwright begins a session for a browser, which Linux holds for as urgent as any: it goes behind where tests do. */
function started(path: string): { readonly executablePath: string; readonly env?: NodeJS.ProcessEnv } {
  if (process.env.DART_STUDIO_BEHIND === undefined) return { executablePath: path };
  return {
    executablePath: resolve('test/helpers/pages/browserBehind.sh'),
    env: { ...process.env, DART_STUDIO_BROWSER: path },
  };
}

/** A real headless Chromium, installed by the rig when it can be, or why there is none here. */
export async function openBrowser(args: readonly string[] = []): Promise<RealBrowser | { readonly why: string }> {
  const { ensureRig } = (await import(pathToFileURL('scripts/lib/rig.mjs').href)) as {
    ensureRig(want: { browser: boolean; tools: boolean }): Promise<{ browser: Part; tools: Part }>;
  };
  const rig = await ensureRig({ browser: true, tools: true });
  if (!rig.browser.ok) return { why: rig.browser.why };
  if (!rig.tools.ok) return { why: rig.tools.why };
  const { chromium } = createRequire(join(rig.tools.path, 'x.js'))('playwright-core') as { chromium: Chromium };
  const browser = await chromium.launch({
    ...started(rig.browser.path),
    headless: true,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      ...args,
    ],
  });
  return { browser, axe: readFileSync(join(rig.tools.path, 'node_modules/axe-core/axe.min.js'), 'utf8') };
}
