/**
 * Explains a number on hover and focus; Esc closes the bubble, the pointer may rest on it (WCAG 1.4.13). One bubble for
 * the page.
 */
import { h, text } from '../ui/dom.js';

const words = new WeakMap<Element, string>();
let bubble: HTMLElement | undefined;
let owner: Element | undefined;
let leaving: ReturnType<typeof setTimeout> | undefined;

/** Makes an element explain itself; call again to change the words. Screen readers get them as its description. */
export function explain<E extends HTMLElement | SVGElement>(e: E, says: string): E {
  if (words.get(e) === says) return e;
  const first = !words.has(e);
  words.set(e, says);
  e.setAttribute('aria-description', says);
  if (owner === e && bubble) text(bubble, says);
  if (first) {
    e.addEventListener('pointerenter', () => show(e));
    e.addEventListener('pointerleave', leave);
    e.addEventListener('focusin', () => {
      if (e.matches(':focus-visible, :has(:focus-visible)')) show(e);
    });
    e.addEventListener('focusout', hide);
  }
  return e;
}
/** A word in running text that explains itself. */
export const term = (label: string, says: string): HTMLElement =>
  explain(h('button', { type: 'button', class: 'term' }, label), says);

function show(e: Element): void {
  const says = words.get(e);
  if (!says) return;
  clearTimeout(leaving);
  if (!bubble) {
    bubble = h('div', {
      class: 'tip',
      role: 'tooltip',
      hidden: true,
      on: { pointerenter: () => clearTimeout(leaving), pointerleave: leave },
    });
    document.addEventListener(
      'keydown',
      (k) => {
        if (k.key === 'Escape' && bubble && !bubble.hidden) {
          hide();
          k.stopPropagation();
        }
      },
      true,
    );
    addEventListener('scroll', hide, { capture: true, passive: true });
  }
  // Inside a landmark, where assistive technology looks for what a page says.
  const landmark = document.querySelector('main') ?? document.body;
  if (bubble.parentElement !== landmark) landmark.append(bubble);
  owner = e;
  text(bubble, says);
  bubble.hidden = false;
  const at = e.getBoundingClientRect(),
    b = bubble.getBoundingClientRect(),
    edge = 8;
  const below = at.bottom + 6 + b.height < innerHeight;
  bubble.style.left = `${Math.max(edge, Math.min(at.left, innerWidth - b.width - edge))}px`;
  bubble.style.top = `${Math.max(edge, below ? at.bottom + 6 : at.top - b.height - 6)}px`;
}
function leave(): void {
  clearTimeout(leaving);
  leaving = setTimeout(hide, 150);
}
function hide(): void {
  clearTimeout(leaving);
  owner = undefined;
  if (bubble) bubble.hidden = true;
}
