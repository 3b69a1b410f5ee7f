/**
 * Tags as chips and a box to add one, completed from those seen elsewhere (a combobox with a list, after the ARIA
 * pattern).
 */
import { h, icon, replace, set } from './dom.js';
import { t } from './words.js';

export interface TagActions {
  add(tag: string): void;
  remove(tag: string): void;
  /** Enter on nothing, or Escape. */
  left(): void;
}
/** Longest tag, and most that are offered. */
const longest = 60,
  offered = 8;
let boxes = 0;

export class TagField {
  readonly element: HTMLElement;
  readonly #actions: TagActions;
  readonly #chips = h('ul', { class: 'ds-tags', 'aria-label': t('Tags') });
  readonly #list: HTMLElement;
  readonly #box = h('div', { class: 'ds-combo' });
  readonly #input: HTMLInputElement;
  #tags: readonly string[] = [];
  #known: readonly string[] = [];
  #at = -1;

  constructor(a: TagActions) {
    this.#actions = a;
    const id = `tags-${++boxes}`;
    this.#list = h('ul', { class: 'ds-options', role: 'listbox', id, 'aria-label': t('Tags used before') });
    this.#input = h('input', {
      class: 'ds-field-input',
      type: 'text',
      role: 'combobox',
      'aria-expanded': 'false',
      'aria-controls': id,
      'aria-autocomplete': 'list',
      'aria-label': t('Add a tag'),
      placeholder: t('Add a tag'),
      maxlength: longest,
      autocomplete: 'off',
      spellcheck: 'false',
    });
    this.element = h('div', { class: 'ds-tagging' }, this.#chips, this.#box);
    this.#box.append(this.#input);
    this.#input.addEventListener('input', () => {
      this.#at = -1;
      this.#offer();
    });
    this.#input.addEventListener('focus', () => this.#offer());
    this.#input.addEventListener('blur', () => {
      this.#close();
      this.#take(this.#input.value, false);
    });
    this.#input.addEventListener('keydown', (k) => this.#key(k));
    // Before the box loses the focus.
    this.#list.addEventListener('pointerdown', (e) => {
      e.preventDefault();
      const t = (e.target as Element).closest<HTMLElement>('[data-tag]')?.dataset['tag'];
      if (t !== undefined) this.#take(t, true);
    });
  }
  update(tags: readonly string[], known: readonly string[], disabled: boolean): void {
    this.#known = known;
    set(this.#input, { disabled });
    if (tags.join('\n') === this.#tags.join('\n') && this.#chips.dataset['off'] === String(disabled)) return;
    this.#tags = tags;
    const had =
      (document.activeElement as HTMLElement | null)?.closest?.('.ds-tag') !== null &&
      this.#chips.contains(document.activeElement);
    set(this.#chips, { data: { off: String(disabled) } });
    replace(
      this.#chips,
      tags.map((tag) =>
        h(
          'li',
          { class: 'ds-tag' },
          h('span', null, tag),
          h(
            'button',
            {
              type: 'button',
              title: t('Remove {0}', tag),
              'aria-label': t('Remove tag {0}', tag),
              disabled,
              on: { click: () => this.#actions.remove(tag) },
            },
            icon('close'),
          ),
        ),
      ),
    );
    this.#chips.hidden = tags.length === 0;
    if (had) this.#input.focus();
  }
  focus(): void {
    this.#input.focus();
  }

  #matches(): string[] {
    const q = this.#input.value.trim().toLowerCase();
    return this.#known.filter((t) => !this.#tags.includes(t) && t.toLowerCase().includes(q)).slice(0, offered);
  }
  #offer(): void {
    const all = this.#matches();
    this.#at = Math.min(this.#at, all.length - 1);
    replace(
      this.#list,
      all.map((t, i) =>
        h(
          'li',
          { role: 'option', id: `${this.#list.id}-${i}`, 'aria-selected': String(i === this.#at), data: { tag: t } },
          t,
        ),
      ),
    );
    if (all.length) this.#box.append(this.#list);
    else this.#list.remove();
    set(this.#input, {
      'aria-expanded': String(all.length > 0),
      'aria-activedescendant': this.#at < 0 ? undefined : `${this.#list.id}-${this.#at}`,
    });
  }
  #close(): void {
    this.#at = -1;
    this.#list.remove();
    set(this.#input, { 'aria-expanded': 'false', 'aria-activedescendant': undefined });
  }
  #take(value: string, more: boolean): void {
    const tag = value.trim().slice(0, longest);
    this.#input.value = '';
    if (tag && !this.#tags.includes(tag)) this.#actions.add(tag);
    if (more) {
      this.#at = -1;
      this.#offer();
    }
  }
  #key(k: KeyboardEvent): void {
    const all = this.#matches();
    if (k.isComposing) return;
    if (k.key === 'ArrowDown' || k.key === 'ArrowUp') {
      if (all.length) {
        const d = k.key === 'ArrowDown' ? 1 : -1,
          n = all.length + 1;
        this.#at = ((this.#at + 1 + d + n) % n) - 1;
        this.#offer();
      }
    } else if (k.key === 'Enter' || (k.key === ',' && this.#input.value.trim())) {
      if (this.#at >= 0 || this.#input.value.trim())
        this.#take(this.#at >= 0 ? all[this.#at]! : this.#input.value, true);
      else this.#leave();
    } else if (k.key === 'Escape') {
      if (!this.#list.isConnected || !this.#input.value) {
        this.#input.value = '';
        this.#leave();
      } else {
        this.#input.value = '';
        this.#offer();
      }
    } else if (k.key === 'Backspace' && !this.#input.value && this.#tags.length) {
      this.#actions.remove(this.#tags.at(-1)!);
    } else return;
    k.preventDefault();
    k.stopPropagation();
  }
  #leave(): void {
    this.#close();
    this.#actions.left();
  }
}
