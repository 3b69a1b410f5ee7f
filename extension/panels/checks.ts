/** Checks of single fields that come from a page, or that VS Code stored for it; bounds are in characters. */
import { isObject } from '../../runtime/protocol/shared.js';
import { tableViews, type TableView } from '../../webview/protocol.js';

export type Raw = Readonly<Record<string, unknown>>;
export const maxPath = 4096,
  maxRuns = 64;
export { isObject };
export const text = (x: unknown, max = maxPath): x is string =>
  typeof x === 'string' && x.length > 0 && x.length <= max;
/** Paths, as many as a workspace has. */
export const texts = (x: unknown): x is string[] => Array.isArray(x) && x.length <= 256 && x.every((e) => text(e));
export const optional = (x: unknown, max = maxPath): x is string | undefined =>
  x === undefined || (typeof x === 'string' && x.length <= max);
export const whole = (x: unknown): x is number => Number.isSafeInteger(x) && (x as number) >= 0;
export const viewOf = (x: unknown): { readonly view?: TableView } => {
  const view = tableViews.find((v) => v === x);
  return view ? { view } : {};
};
