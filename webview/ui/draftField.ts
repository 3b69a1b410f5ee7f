/**
 * A text field that saves itself: what is typed is a draft until a pause, Enter or leaving the field; Escape puts the
 * saved text back.
 */
import { h, set, text } from './dom.js';

export interface DraftOptions {
  readonly label: string;
  /** Several lines: Enter breaks the line, Ctrl+Enter finishes. */
  readonly many?: boolean;
  readonly rows?: number;
  readonly placeholder?: string;
  readonly hint?: string;
  /** The label is not shown, only read out. */
  readonly bare?: boolean;
  /** Why a text is wrong; such a draft stays in the field and is not committed. */
  check?(value: string): string | undefined;
  /** Each change, before it is committed; undefined: it is as saved again. */
  typed?(value: string | undefined): void;
  commit(value: string): void;
  /** Enter or Escape was pressed. */
  left?(): void;
}
/** Pause after which typing becomes one edit, ms. */
export const pause = 1200;
let fields = 0;

export class DraftField {
  readonly element: HTMLElement;
  readonly input: HTMLInputElement | HTMLTextAreaElement;
  readonly #o: DraftOptions;
  readonly #trouble: HTMLElement;
  #saved = '';
  #dirty = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(o: DraftOptions) {
    this.#o = o;
    const id = `field-${++fields}`;
    this.#trouble = h('p', { class: 'ds-field-trouble', id: `${id}-trouble`, role: 'alert' });
    const attributes = {
      id,
      class: 'ds-field-input',
      placeholder: o.placeholder,
      'aria-label': o.bare ? o.label : undefined,
      'aria-describedby': `${o.hint ? `${id}-hint ` : ''}${id}-trouble`,
      spellcheck: 'false',
      autocomplete: 'off',
    };
    this.input = o.many
      ? h('textarea', { ...attributes, rows: o.rows ?? 2 })
      : h('input', { ...attributes, type: 'text' });
    this.element = h(
      'div',
      { class: 'ds-field' },
      o.bare ? undefined : h('label', { for: id }, o.label),
      this.input,
      o.hint ? h('p', { class: 'ds-field-hint', id: `${id}-hint` }, o.hint) : undefined,
      this.#trouble,
    );
    this.input.addEventListener('input', () => this.#typed());
    this.input.addEventListener('blur', () => this.flush());
    this.input.addEventListener('keydown', (k) => this.#key(k as KeyboardEvent));
  }

  /** The saved text. A draft is not overwritten. */
  set(value: string): void {
    this.#saved = value;
    if (this.#dirty) {
      this.#dirty = this.input.value !== value;
      return;
    }
    if (this.input.value !== value) this.input.value = value;
    this.#say(undefined);
  }
  set disabled(on: boolean) {
    this.input.disabled = on;
  }
  get value(): string {
    return this.input.value;
  }
  /** Commits what is typed; false when it cannot be. */
  flush(): boolean {
    clearTimeout(this.#timer);
    if (!this.#dirty) return true;
    const trouble = this.#o.check?.(this.input.value);
    this.#say(trouble);
    if (trouble !== undefined) return false;
    this.#dirty = false;
    this.#saved = this.input.value;
    this.#o.typed?.(undefined);
    this.#o.commit(this.input.value);
    return true;
  }
  /** Puts the saved text back. */
  revert(): void {
    clearTimeout(this.#timer);
    this.#dirty = false;
    this.input.value = this.#saved;
    this.#say(undefined);
    this.#o.typed?.(undefined);
  }
  /** Words at the field, as `check` has them. */
  complain(words: string): void {
    this.#say(words);
  }
  focus(): void {
    this.input.focus();
    this.input.select();
  }

  #typed(): void {
    // VS Code sends undo to the page as a whole; a field without the focus ignores it.
    if (document.activeElement !== this.input) {
      this.input.value = this.#saved;
      return;
    }
    this.#dirty = this.input.value !== this.#saved;
    this.#o.typed?.(this.#dirty ? this.input.value : undefined);
    clearTimeout(this.#timer);
    if (!this.#dirty) this.#say(undefined);
    else if (this.#o.check?.(this.input.value) === undefined) {
      this.#say(undefined);
      this.#timer = setTimeout(() => this.flush(), pause);
    }
  }
  #key(k: KeyboardEvent): void {
    if (k.isComposing || (k.key !== 'Escape' && !(k.key === 'Enter' && (!this.#o.many || k.ctrlKey || k.metaKey))))
      return;
    k.preventDefault();
    k.stopPropagation();
    if (k.key === 'Escape') this.revert();
    else if (!this.flush()) return;
    this.#o.left?.();
  }
  #say(trouble: string | undefined): void {
    text(this.#trouble, trouble ?? '');
    set(this.input, { 'aria-invalid': trouble === undefined ? undefined : 'true' });
  }
}
