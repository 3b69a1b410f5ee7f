/** Words across the page: a state that needs attention, or why there is nothing to show. */
import { h, icon, type Child } from './dom.js';

export function bannerView(
  name: string,
  words: string,
  tone: 'info' | 'warning' | 'error',
  ...more: Child[]
): HTMLElement {
  return h(
    'div',
    { class: `ds-banner ${tone}`, role: 'status' },
    icon(name),
    h('div', { class: 'words' }, words),
    more,
  );
}
/** Shown instead of the page's content: what is wrong and what to do next. */
export function emptyState(name: string, message: string, remedy: string, ...more: Child[]): HTMLElement {
  return h(
    'div',
    { class: 'ds-lack', role: 'alert' },
    icon(name),
    h('h1', null, message),
    remedy ? h('p', null, remedy) : undefined,
    more,
  );
}
