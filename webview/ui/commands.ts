/**
 * One table of a page's commands: single keys inside the page, names for VS Code's own keys and menus, and the list
 * behind `?`.
 */
import { h, replace } from './dom.js';
import { button } from './toolkit.js';
import { t } from './words.js';

export interface Command {
  /** Name for the host's `do` messages; several rows may share one. */
  readonly name: string;
  /** KeyboardEvent.key values. */
  readonly keys: readonly string[];
  readonly words: string;
  readonly group: string;
  readonly alt?: boolean;
  /** The key needs Ctrl, or Cmd. */
  readonly ctrl?: boolean;
  /** A key that is held does it once. */
  readonly once?: boolean;
  run(context?: unknown): void;
}

/** Controls in which typing belongs to the control. */
const typing = 'input, textarea, select, vscode-text-field, vscode-dropdown, vscode-text-area';
const pressing = 'button, a, summary, vscode-button';

export class Commands {
  readonly #all: readonly Command[];
  #dialog: HTMLDialogElement | undefined;

  constructor(all: readonly Command[]) {
    this.#all = [
      ...all,
      { name: 'shortcuts', keys: ['?'], words: t('Show these shortcuts'), group: t('Page'), run: () => this.help() },
    ];
    addEventListener('keydown', (e) => this.#key(e));
  }
  /** Carries out a command by its name; false when there is none. */
  run(name: string, context?: unknown): boolean {
    const c = this.#all.find((x) => x.name === name);
    c?.run(context);
    return c !== undefined;
  }
  #key(e: KeyboardEvent): void {
    // VS Code takes Ctrl+Z and its like from every page before the page sees them, and they are the page's all the
    // same.
    const ctrl = e.ctrlKey || e.metaKey;
    if ((e.defaultPrevented && !ctrl) || this.#dialog?.open) return;
    const path = e.composedPath().filter((x): x is Element => x instanceof Element);
    if (path.some((x) => x.matches(typing))) return;
    if ((e.key === ' ' || e.key === 'Enter') && path.some((x) => x.matches(pressing))) return;
    const c = this.#all.find(
      (x) => x.keys.includes(e.key) && (x.alt ?? false) === e.altKey && (x.ctrl ?? false) === ctrl,
    );
    if (!c) return;
    e.preventDefault();
    if (!(c.once && e.repeat)) c.run();
  }
  /** The dialog of all shortcuts; focus goes back where it was. */
  help(): void {
    this.#dialog ??= document.body.appendChild(h('dialog', { class: 'ds-dialog', 'aria-labelledby': 'ds-keys-title' }));
    const d = this.#dialog,
      groups = [...new Set(this.#all.map((c) => c.group))];
    replace(
      d,
      h(
        'header',
        null,
        h('h2', { id: 'ds-keys-title' }, t('Keyboard shortcuts')),
        button(t('Close'), () => d.close(), { kind: 'icon', icon: 'close', title: t('Close (Esc)') }),
      ),
      h(
        'div',
        { class: 'ds-keys' },
        groups.map((g) =>
          h(
            'section',
            null,
            h('h3', null, g),
            h(
              'dl',
              null,
              this.#all
                .filter((c) => c.group === g && c.keys.length)
                .map((c) =>
                  h(
                    'div',
                    null,
                    h(
                      'dt',
                      null,
                      c.keys.map((k, i) => [
                        i ? [' ', t('or'), ' '] : undefined,
                        c.alt ? h('kbd', null, 'Alt') : undefined,
                        c.alt ? ' ' : undefined,
                        c.ctrl ? [h('kbd', null, 'Ctrl'), ' '] : undefined,
                        c.ctrl && /^[A-Z]$/.test(k) ? [h('kbd', null, 'Shift'), ' '] : undefined,
                        h('kbd', null, c.ctrl ? k.toUpperCase() : keyName(k)),
                      ]),
                    ),
                    h('dd', null, c.words),
                  ),
                ),
            ),
          ),
        ),
      ),
    );
    d.addEventListener(
      'click',
      (e) => {
        if (e.target === d) d.close();
      },
      { once: true },
    );
    if (!d.open) d.showModal();
  }
}
const names: Readonly<Record<string, string>> = {
  ' ': 'Space',
  ArrowLeft: '←',
  ArrowRight: '→',
  ArrowUp: '↑',
  ArrowDown: '↓',
  PageUp: 'PgUp',
  PageDown: 'PgDn',
  Escape: 'Esc',
  '-': '−',
};
const keyName = (k: string): string => names[k] ?? k;

/** Says things to screen readers: the newest words only, also when they are the same twice. */
export class Announcer {
  readonly element = h('div', { class: 'sr-only', role: 'status', 'aria-live': 'polite' });
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Waits for a pause in the scrubbing, so that twenty steps passed are not read out. */
  say(words: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => replace(this.element, h('span', null, words)), 150);
  }
}
