/** The newest failures as a small dialog: what was asked, how far it got, and one press to look at it. */
import type { TrajectoryRow } from '../../runtime/protocol/types.js';
import { h, icon, replace } from '../ui/dom.js';
import { RequestFailed, type Host } from '../ui/host.js';
import { button, progress } from '../ui/toolkit.js';
import { steps, t, whole } from '../ui/words.js';
import { ago, shortFamily } from './format.js';

export class Failures {
  readonly element: HTMLDialogElement;
  readonly #host: Host<'dashboard'>;
  readonly #list = h('div', { class: 'failures-list' });
  #from: HTMLElement | undefined;

  constructor(host: Host<'dashboard'>) {
    this.#host = host;
    this.element = h(
      'dialog',
      { class: 'failures', 'aria-labelledby': 'failures-h', on: { close: () => this.#from?.focus() } },
      h(
        'div',
        { class: 'failures-head' },
        h('h2', { id: 'failures-h' }, t('Newest failures')),
        button(t('Close'), () => this.element.close(), { kind: 'icon', icon: 'close' }),
      ),
      this.#list,
    );
    this.element.addEventListener('click', (e) => {
      if (e.target === this.element) this.element.close();
    });
  }
  async open(run: string, from: HTMLElement): Promise<void> {
    this.#from = from;
    replace(this.#list, progress(t('Looking for failures…')));
    this.element.showModal();
    try {
      const { rows, total } = await this.#host.request('trajectory/list', {
        run,
        filter: { outcome: ['failure'] },
        sort: 'newest',
        limit: 12,
      });
      replace(
        this.#list,
        rows.length === 0
          ? h('p', null, t('No rollout has failed.'))
          : [
              h(
                'p',
                { class: 'hint' },
                total === 1
                  ? t('{0} newest of 1 failure', rows.length)
                  : t('{0} newest of {1} failures', rows.length, whole(total)),
              ),
              h(
                'ul',
                { role: 'list' },
                rows.map((r) => h('li', null, this.#row(run, r))),
              ),
            ],
      );
      this.#list.querySelector<HTMLElement>('.failure')?.focus();
    } catch (e) {
      replace(
        this.#list,
        h(
          'p',
          { class: 'fault', role: 'alert' },
          icon('error'),
          e instanceof RequestFailed ? `${e.message} ${e.remedy}` : String(e),
        ),
      );
    }
  }
  #row(run: string, r: TrajectoryRow): HTMLElement {
    const facts = [
      r.truncated ? t('hit the limit of {0}', steps(r.cap)) : t('{0} of {1}', steps(r.steps), r.cap),
      ...(r.provenance === 'probe' ? [t('evaluation')] : []),
      ...(r.versions ? [`v${r.versions[1]}`] : []),
      ...(r.endedAt ? [ago(Date.now() - r.endedAt)] : []),
    ];
    return h(
      'button',
      {
        type: 'button',
        class: 'failure',
        on: {
          click: () => {
            this.element.close();
            this.#host.act({ action: 'openTrajectory', run, rollout: r.rollout });
          },
        },
      },
      h('span', { class: 'failure-task' }, shortFamily(r.family)),
      h('span', { class: 'failure-words', dir: 'auto' }, r.instruction || r.task),
      h('span', { class: 'dim' }, facts.join(' · ')),
    );
  }
}
