/**
 * The only place that knows @vscode/webview-ui-toolkit (archived upstream, pinned at 1.4.0): registers what our pages
 * use and wraps each kind of control in one function, so that another library is a change of this file.
 */
import { nonceElement } from './nonce.js';
import {
  provideVSCodeDesignSystem,
  vsCodeButton,
  vsCodeDropdown,
  vsCodeOption,
  vsCodeTag,
  vsCodeTextField,
} from '@vscode/webview-ui-toolkit';
import { h, icon, type Child } from './dom.js';

nonceElement.remove();
let registered = false;
/** Before the first control is made. */
export function registerToolkit(): void {
  if (registered) return;
  registered = true;
  provideVSCodeDesignSystem().register(
    vsCodeButton(),
    vsCodeDropdown(),
    vsCodeOption(),
    vsCodeTag(),
    vsCodeTextField(),
  );
}

export interface ButtonOptions {
  readonly kind?: 'primary' | 'secondary' | 'icon';
  readonly icon?: string;
  readonly title?: string;
  readonly pressed?: boolean;
  readonly disabled?: boolean;
  readonly keys?: string;
}
/** Text and title name the button; an icon-only one is named by its title. */
export function button(label: string, run: () => void, o: ButtonOptions = {}): HTMLElement {
  const only = o.kind === 'icon';
  const e = h(
    'vscode-button',
    {
      appearance: o.kind ?? 'secondary',
      title: o.title ?? (only ? label : undefined),
      'aria-label': only ? label : undefined,
      'aria-keyshortcuts': o.keys,
      disabled: o.disabled,
      on: { click: run },
    },
    o.icon ? (only ? icon(o.icon) : slotted(icon(o.icon))) : undefined,
    only ? undefined : label,
  );
  if (o.pressed !== undefined) setPressed(e, o.pressed);
  return e;
}
/**
 * Sets the pressed state of a button that switches something. The toolkit does not hand this attribute on to the real
 * button inside, which is what is read out.
 */
export function setPressed(b: HTMLElement, on: boolean): void {
  const pressed = String(on),
    tell = (): void => b.shadowRoot?.querySelector('button')?.setAttribute('aria-pressed', pressed);
  b.setAttribute('aria-pressed', pressed);
  if (b.shadowRoot?.querySelector('button')) tell();
  else requestAnimationFrame(tell);
}
const slotted = (e: HTMLElement): HTMLElement => {
  e.slot = 'start';
  return e;
};

/** A list to choose one from; `label` is its accessible name. */
export function dropdown<V extends string>(
  label: string,
  options: readonly { readonly value: V; readonly label: string }[],
  value: V,
  changed: (v: V) => void,
): HTMLElement {
  const e = h(
    'vscode-dropdown',
    { 'aria-label': label },
    options.map((o) => h('vscode-option', { value: o.value, selected: o.value === value }, o.label)),
  ) as HTMLElement & { value: string };
  void customElements.whenDefined('vscode-dropdown').then(() => {
    e.value = value;
    e.addEventListener('change', () => changed(e.value as V));
  });
  return e;
}

export function textField(
  label: string,
  value: string,
  changed: (v: string) => void,
  placeholder = label,
): HTMLElement {
  const e = h('vscode-text-field', { 'aria-label': label, placeholder }) as HTMLElement & { value: string };
  // Whenever it is inserted, the toolkit names a field without a text of its own "Text field".
  new MutationObserver(() => {
    if (e.getAttribute('aria-label') !== label) e.setAttribute('aria-label', label);
  }).observe(e, { attributeFilter: ['aria-label'] });
  void customElements.whenDefined('vscode-text-field').then(() => {
    e.value = value;
    e.addEventListener('input', () => changed(e.value));
  });
  return e;
}

/**
 * Work going on, with words for it. Not the toolkit's ring: it sets an inline style, which the content policy reports
 * as a breach.
 */
export const progress = (words: string): HTMLElement => progressOf(h('span', null, words));
/** Progress in place of a page's content, as its heading: there is nothing else yet. */
export const pageProgress = (words: string): HTMLElement => progressOf(h('h1', null, words));
const progressOf = (words: HTMLElement): HTMLElement =>
  h('div', { class: 'ds-progress', role: 'status' }, icon('loading codicon-modifier-spin'), words);
export function tag(...children: Child[]): HTMLElement {
  return h('vscode-tag', null, ...children);
}
