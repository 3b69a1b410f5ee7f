/** Questions the live page asks before it does something: a text, or a yes. Modal; the focus goes back where it was. */
import { h, icon, replace, text } from '../ui/dom.js';
import { button } from '../ui/toolkit.js';
import { t } from '../ui/words.js';

export interface Question {
  readonly title: string;
  readonly says: string;
  readonly yes: string;
  readonly icon?: string;
  /** A text is asked for; `required` says what is missing when it is empty. */
  readonly field?: {
    readonly label: string;
    readonly required?: string;
  };
}

/** A field of one line of text under a label that stays. */
export function field(
  label: string,
  typed: (v: string) => void,
): { readonly element: HTMLElement; readonly input: HTMLInputElement } {
  const input = h('input', { type: 'text', autocomplete: 'off' });
  input.addEventListener('input', () => typed(input.value));
  return { element: h('label', { class: 'live-field' }, h('span', null, label), input), input };
}

let dialog: HTMLDialogElement | undefined;
/** The text ('' without a field), or undefined when the person cancels. */
export function ask(q: Question): Promise<string | undefined> {
  const d = (dialog ??= document.body.appendChild(
    h('dialog', {
      class: 'ds-dialog live-ask',
      'aria-labelledby': 'live-ask-title',
      'aria-describedby': 'live-ask-says',
    }),
  ));
  if (d.open) return Promise.resolve(undefined);
  const before = document.activeElement;
  return new Promise((resolve) => {
    let answer: string | undefined;
    const content = questionView(
      q,
      (text) => {
        answer = text;
        d.close();
      },
      () => d.close(),
    );
    replace(
      d,
      h(
        'header',
        null,
        h('h2', { id: 'live-ask-title' }, q.title),
        button(t('Close'), () => d.close(), { kind: 'icon', icon: 'close', title: t('Close (Esc)') }),
      ),
      content,
    );
    d.addEventListener(
      'close',
      () => {
        if (before instanceof HTMLElement && before.isConnected) before.focus();
        resolve(answer);
      },
      { once: true },
    );
    d.showModal();
    content.querySelector<HTMLElement>('input, vscode-button')?.focus();
  });
}
/** The question, its field and the two buttons. */
function questionView(q: Question, answered: (text: string) => void, cancelled: () => void): HTMLElement {
  let value = '';
  const missing = h('p', { class: 'live-missing', role: 'alert' });
  const line = q.field
    ? field(q.field.label, (v) => {
        value = v;
        text(missing, '');
      })
    : undefined;
  const yes = (): void => {
    if (q.field?.required && !value.trim()) {
      text(missing, q.field.required);
      line?.input.focus();
    } else answered(value.trim());
  };
  const enter = (e: KeyboardEvent): void => {
    if (e.key !== 'Enter' || e.target !== line?.input || e.isComposing) return;
    e.preventDefault();
    yes();
  };
  return h(
    'div',
    { class: 'live-ask-body', on: { keydown: enter } },
    h('p', { id: 'live-ask-says' }, q.says),
    line?.element,
    missing,
    h(
      'div',
      { class: 'live-ask-buttons' },
      button(q.yes, yes, { kind: 'primary', icon: q.icon }),
      button(t('Cancel'), cancelled),
    ),
  );
}

/** A button that stays reachable when it cannot be pressed, and then says why: in its tip, and when it is tried. */
export class RefusableButton {
  readonly element: HTMLElement;
  readonly #title: string;
  #why: string | undefined;
  constructor(
    label: string,
    run: () => void,
    refused: (why: string) => void,
    o: {
      readonly icon: string;
      readonly key?: string;
      readonly title: string;
      readonly kind?: 'primary' | 'secondary';
    },
  ) {
    this.#title = o.key === undefined ? o.title : `${o.title} (${o.key})`;
    this.element = button(
      label,
      () => {
        if (this.#why === undefined) run();
        else refused(this.#why);
      },
      {
        icon: o.icon,
        title: this.#title,
        kind: o.kind,
        keys: o.key,
      },
    );
    if (o.key !== undefined) this.element.append(h('kbd', { 'aria-hidden': 'true' }, o.key));
  }
  /** undefined: it can be pressed. */
  setRefusal(why: string | undefined): void {
    if (why === this.#why) return;
    this.#why = why;
    this.element.title = why === undefined ? this.#title : t('{0}: not now. {1}.', this.#title, why);
    if (why === undefined) this.element.removeAttribute('aria-disabled');
    else this.element.setAttribute('aria-disabled', 'true');
  }
}
export const busyIcon = (name: string): HTMLElement =>
  icon(name === 'loading' ? 'loading codicon-modifier-spin' : name);
