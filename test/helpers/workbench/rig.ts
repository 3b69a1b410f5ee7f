import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Chromium } from './playwright.js';

/** What scripts/e2e.mjs made ready; a part that could not be is in `missing` with its reason. */
export interface Rig {
  readonly browser?: string;
  readonly tools?: string;
  readonly latest?: string;
  readonly min?: string;
  readonly vsix?: string;
  readonly helper?: string;
  readonly vsixProblems?: readonly string[];
  readonly missing: Readonly<Record<string, string>>;
  readonly versions: { readonly min: string; readonly latest: string };
  /** Parent of the desktop's cache, so that a workbench with another home folder finds the built desktop. */
  readonly cache: string;
}
export type Which = 'latest' | 'min';

const record = '.cache/e2e/rig.json';
let read: Rig | undefined;
/**
 * `npm test` and `npm run e2e` prepare first; vitest called by hand prepares here, so that it never tests an old VSIX.
 */
export function rig(): Rig {
  if (!read) {
    if (!process.env['DART_STUDIO_E2E'] || !existsSync(record)) {
      try {
        execFileSync(process.execPath, ['scripts/e2e.mjs', '--prepare'], { stdio: ['ignore', 'inherit', 'inherit'] });
      } catch {
        /* what lacks is in the record */
      }
    }
    read = JSON.parse(readFileSync(record, 'utf8')) as Rig;
  }
  return read;
}
/** Why the workbench tests cannot run here; undefined when they can. */
export function whyNoWorkbench(which: Which): string | undefined {
  const r = rig(),
    lacks = (['browser', 'tools', 'vsix', 'helper', which] as const).find((k) => r[k] === undefined);
  return lacks === undefined ? undefined : `${lacks}: ${r.missing[lacks] ?? 'missing'}`;
}

export function chromium(): Chromium {
  return (createRequire(join(rig().tools!, 'x.js'))('playwright-core') as { chromium: Chromium }).chromium;
}
export const axeSource = (): string => readFileSync(join(rig().tools!, 'node_modules/axe-core/axe.min.js'), 'utf8');
