/**
 * DOM building without innerHTML: elements from tag, properties and children; strings become text nodes. Safe under a
 * strict CSP.
 */

/**
 * `class`, `style` (CSSOM, custom properties too), `on` (listeners), `data`, `prop` (DOM properties); everything else
 * is an attribute: true = present, false or undefined = absent.
 */
export interface Props {
  readonly class?: string | readonly (string | false | undefined)[];
  readonly style?: Readonly<Record<string, string | number | undefined>>;
  readonly on?: { readonly [K in keyof HTMLElementEventMap]?: (e: HTMLElementEventMap[K]) => void };
  readonly data?: Readonly<Record<string, string | number | undefined>>;
  readonly prop?: Readonly<Record<string, unknown>>;
  readonly [attribute: string]: unknown;
}
export type Child = Node | string | number | false | null | undefined | readonly Child[];

const svgNs = 'http://www.w3.org/2000/svg';

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props?: Props | null,
  ...children: Child[]
): HTMLElementTagNameMap[K];
export function h(tag: string, props?: Props | null, ...children: Child[]): HTMLElement;
export function h(tag: string, props?: Props | null, ...children: Child[]): HTMLElement {
  return fill(document.createElement(tag), props, children);
}
/** The same for SVG. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  props?: Props | null,
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS(svgNs, tag), props, children);
}

function fill<E extends HTMLElement | SVGElement>(
  e: E,
  props: Props | null | undefined,
  children: readonly Child[],
): E {
  if (props) set(e, props);
  append(e, children);
  return e;
}

/** Applies properties to an element that exists. */
export function set(e: HTMLElement | SVGElement, props: Props): void {
  for (const [k, v] of Object.entries(props)) {
    if (k === 'class')
      e.setAttribute(
        'class',
        typeof v === 'string'
          ? v
          : ((v as readonly (string | false | undefined)[] | undefined)?.filter(Boolean).join(' ') ?? ''),
      );
    else if (k === 'style')
      for (const [p, x] of Object.entries((v ?? {}) as Record<string, string | number | undefined>)) {
        if (x === undefined) e.style.removeProperty(p);
        else e.style.setProperty(p, String(x));
      }
    else if (k === 'on')
      for (const [t, l] of Object.entries((v ?? {}) as Record<string, EventListener>)) e.addEventListener(t, l);
    else if (k === 'data')
      for (const [d, x] of Object.entries((v ?? {}) as Record<string, string | number | undefined>)) {
        if (x === undefined) delete e.dataset[d];
        else e.dataset[d] = String(x);
      }
    else if (k === 'prop') Object.assign(e, v);
    else if (v === undefined || v === null || v === false) e.removeAttribute(k);
    else e.setAttribute(k, v === true ? '' : String(v));
  }
}

export function append(parent: Node, children: readonly Child[]): void {
  for (const c of children) {
    if (c === false || c === null || c === undefined) continue;
    if (typeof c === 'string' || typeof c === 'number') parent.appendChild(document.createTextNode(String(c)));
    else if (c instanceof Node) parent.appendChild(c);
    else append(parent, c);
  }
}
/** Replaces all children. */
export function replace(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}
/** Writes text only when it differs: no needless layout, no repeated announcement. */
export function text(e: Element, t: string): void {
  if (e.textContent !== t) e.textContent = t;
}

/** A codicon; decorative unless it has a label. */
export function icon(name: string, label?: string): HTMLElement {
  return h('span', {
    class: `codicon codicon-${name}`,
    ...(label ? { role: 'img', 'aria-label': label } : { 'aria-hidden': 'true' }),
  });
}

/**
 * Gives the focus to what the page is for, once the page has it and nothing else does: a page opened beside a list does
 * not take it away.
 */
export function focusFirst(focus: () => void): void {
  const take = (): void => {
    if (document.hasFocus() && (document.activeElement === document.body || document.activeElement === null)) focus();
  };
  take();
  addEventListener('focus', take);
}

/** Runs once in the next animation frame however often it is asked for. */
export function scheduler(run: () => void): () => void {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      run();
    });
  };
}
