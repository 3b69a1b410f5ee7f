/** The facts of a run below its header, and what can be done with its run file. */
import { h, replace } from '../ui/dom.js';
import type { Host } from '../ui/host.js';
import { roving } from '../ui/roving.js';
import { button } from '../ui/toolkit.js';
import { t } from '../ui/words.js';
import { factsOf } from './facts.js';
import type { Model } from './model.js';
import { explain } from './tip.js';

export class RunFacts {
  readonly element: HTMLElement;
  readonly #list = h('dl', { class: 'facts-list' });
  #shown = '';

  constructor(host: Host<'dashboard'>, run: () => string) {
    const act = (command: 'openRunFile' | 'duplicateRun') => (): void =>
      host.act({ action: 'command', command, argument: run() });
    roving(this.#list, 'dd');
    this.element = h(
      'section',
      { class: 'run-facts', 'aria-label': t('About the run') },
      this.#list,
      h(
        'div',
        { class: 'buttons' },
        button(t('Open Run File'), act('openRunFile'), {
          icon: 'go-to-file',
          title: t('The options that the run was started with'),
        }),
        button(t('Duplicate with Changes…'), act('duplicateRun'), {
          icon: 'copy',
          title: t('Create a run file with these options, to edit and start'),
        }),
      ),
    );
  }
  render(m: Model): void {
    const facts = factsOf(m),
      key = JSON.stringify(facts);
    if (key === this.#shown) return;
    this.#shown = key;
    replace(
      this.#list,
      facts.map((f) =>
        h('div', { class: 'fact' }, h('dt', null, f.label), explain(h('dd', { tabindex: -1 }, f.value), f.says)),
      ),
    );
  }
}
