/** A small dialog beside a button: one at a time; Esc, and a press anywhere else, close it and give the focus back. */
import { h, type Child } from '../ui/dom.js';

let open: { readonly close: () => void } | undefined;

export function popover(anchor: HTMLElement, label: string, ...body: Child[]): { close(): void } {
  open?.close();
  const element = h('div', { class: 'tb-popover', role: 'dialog', 'aria-label': label }, body);
  document.body.append(element);
  const at = anchor.getBoundingClientRect(),
    width = element.offsetWidth;
  element.style.left = `${Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`;
  element.style.top = `${at.bottom + 3}px`;
  element.style.maxHeight = `${Math.max(160, innerHeight - at.bottom - 16)}px`;
  const mine = {
    close: (): void => {
      if (open !== mine) return;
      open = undefined;
      const focused = element.contains(document.activeElement);
      element.remove();
      removeEventListener('pointerdown', outside, true);
      if (focused) anchor.focus();
    },
  };
  const outside = (e: Event): void => {
    if (!e.composedPath().includes(element) && !e.composedPath().includes(anchor)) mine.close();
  };
  element.addEventListener('keydown', (e) => {
    if (e.key === 'Escape') mine.close();
    // Keys of the page are not for what is written here.
    e.stopPropagation();
  });
  addEventListener('pointerdown', outside, true);
  open = mine;
  element.querySelector<HTMLElement>('input, select, button')?.focus();
  return mine;
}
export const closePopover = (): void => open?.close();
