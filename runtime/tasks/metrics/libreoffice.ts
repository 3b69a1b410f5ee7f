import type { Value } from '../values.js';
import { equal } from '../values.js';
import type { Metric } from './types.js';
import { fileText, nothing, pass, rule } from './types.js';
import { elementText, elements } from './xml.js';

/** Metrics on LibreOffice's registrymodifications.xcu. */

/** Values of a property, in file order. */
function registry(result: Value, path: string, name: string): string[] | undefined {
  const text = fileText(result);
  return text === undefined
    ? undefined
    : elements(text, 'item', { 'oor:path': path })
        .flatMap((item) => elements(item, 'prop', { 'oor:name': name }))
        .map((p) => elementText(p, 'value') ?? '');
}

/** Writer's default font. */
export const findDefaultFont: Metric = (i) => {
  const want = rule(i, 'font_name'),
    found = registry(i.result, '/org.openoffice.Office.Writer/DefaultFont', 'Standard');
  if (found === undefined) return nothing('no file');
  const font = found.at(-1) ?? null;
  return pass(equal(font, want), font ?? 'not set', String(want));
};

/** Minutes between automatic saves. */
export const checkAutoSavingTime: Metric = (i) => {
  const want = rule(i, 'minutes'),
    found = registry(i.result, '/org.openoffice.Office.Common/Save/Document', 'AutoSaveTimeIntervall')?.at(-1);
  return found === undefined
    ? nothing('not set')
    : pass(/^\s*\d+\s*$/.test(found) && Number(found) === want, found, String(want));
};

/** Impress's presenter console is off. */
export const checkPresenterConsoleDisable: Metric = (i) => {
  const found = registry(i.result, '/org.openoffice.Office.Impress/Misc/Start', 'EnablePresenterScreen')?.[0];
  return found === undefined ? nothing('not set') : pass(found.trim().toLowerCase() === 'false', found, 'false');
};
