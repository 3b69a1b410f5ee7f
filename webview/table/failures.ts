/** Failures in clusters, by where they part from successes of the same task. */
import type { FailureCluster, FailureExemplar, FailuresView, TableFilter } from '../../runtime/protocol/types.js';
import { shortFamily } from '../dashboard/format.js';
import type { HostError } from '../protocol.js';
import { actionsWords } from '../ui/actions.js';
import { emptyState } from '../ui/banner.js';
import { h, replace } from '../ui/dom.js';
import { hostErrorOf, type Host } from '../ui/host.js';
import { button, dropdown, progress } from '../ui/toolkit.js';
import { t, whole } from '../ui/words.js';
import { clusterFacts, clusterWords } from './clusterWords.js';
import { withOlder } from './grid.js';
import { legendMark, scatter } from './scatter.js';
import { pointOf, Thumbs } from './thumbs.js';

export interface FailuresActions {
  list(filter: TableFilter): void;
}
const all = '';
const failureWords = (n: number): string => (n === 1 ? t('1 failure') : t('{0} failures', whole(n)));
/** The controls that choose; drawn anew with each answer. */
const choosers = '.tb-bar vscode-dropdown, .tb-bar input';
const most = 40;

export class Failures {
  readonly element = h('section', {
    class: 'tb-failures',
    role: 'tabpanel',
    id: 'tb-view-failures',
    'aria-labelledby': 'tb-tab-failures',
  });
  readonly #host: Host<'table'>;
  readonly #actions: FailuresActions;
  readonly #thumbs: Thumbs;
  #run = '';
  #family = all;
  #version: { readonly min?: number; readonly max?: number } = {};
  #view: FailuresView | undefined;
  #error: HostError | undefined;
  #asking: AbortController | undefined;
  #asked = '';

  constructor(host: Host<'table'>, actions: FailuresActions) {
    this.#host = host;
    this.#actions = actions;
    this.#thumbs = new Thumbs(host);
  }
  /** The view is on show. */
  show(run: string): void {
    if (run !== this.#run) {
      this.#run = run;
      this.#thumbs.open(run);
      this.#family = all;
      this.#version = {};
    }
    const key = JSON.stringify([run, this.#family, this.#version]);
    if (key !== this.#asked) void this.#load(key);
  }
  async #load(key: string): Promise<void> {
    this.#asked = key;
    this.#asking?.abort();
    const asking = (this.#asking = new AbortController());
    this.#error = undefined;
    this.#draw(true);
    try {
      const view = await this.#host.request(
        'run/failures',
        {
          run: this.#run,
          ...(this.#family === all ? {} : { family: this.#family }),
          ...(Object.keys(this.#version).length > 0 ? { version: this.#version } : {}),
        },
        asking.signal,
      );
      if (asking.signal.aborted) return;
      this.#view = view;
    } catch (e) {
      if (asking.signal.aborted) return;
      this.#view = undefined;
      this.#error = hostErrorOf(e);
    }
    this.#draw(false);
  }

  #draw(busy: boolean): void {
    const v = this.#view,
      chooser = [...this.element.querySelectorAll(choosers)].indexOf(document.activeElement!);
    if (this.#error)
      replace(
        this.element,
        emptyState(
          'error',
          this.#error.message,
          this.#error.remedy,
          button(t('Try again'), () => void this.#load(this.#asked), { icon: 'refresh' }),
        ),
      );
    else if (!v) replace(this.element, progress(t('Comparing failures with successes…')));
    else if (v.families.length === 0 && Object.keys(this.#version).length === 0)
      replace(
        this.element,
        emptyState(
          'pass',
          t('No failure'),
          t('Failures are grouped by where they first differ from a success of the same task.'),
        ),
      );
    else
      replace(
        this.element,
        this.#head(v, busy),
        h(
          'div',
          { class: ['tb-failures-body', busy && 'pending'] },
          v.clicks && v.clicks.x.length > 0
            ? scatter(v.clicks, t('Clicks in {0}', shortFamily(this.#family)), this.#thumbs, {
                open: (rollout, step) => this.#open(rollout, step),
              })
            : undefined,
          v.clusters.length === 0
            ? h('p', { class: 'ds-quiet' }, t('No failure of these versions.'))
            : h(
                'ol',
                { class: 'tb-clusters', role: 'list' },
                v.clusters.slice(0, most).map((c) => this.#cluster(c, v)),
              ),
        ),
      );
    // The keyboard's focus stays on the same control.
    if (chooser >= 0) this.element.querySelectorAll<HTMLElement>(choosers)[chooser]?.focus();
  }
  #head(v: FailuresView, busy: boolean): HTMLElement {
    const version = (end: 'min' | 'max', label: string): HTMLElement =>
      h('input', {
        class: 'tb-input tb-version',
        type: 'number',
        min: 0,
        'aria-label': label,
        placeholder: label,
        prop: { value: this.#version[end] === undefined ? '' : String(this.#version[end]) },
        on: {
          change: (e) => {
            const { value } = e.target as HTMLInputElement,
              { [end]: _before, ...rest } = this.#version;
            this.#version = value === '' ? rest : { ...rest, [end]: Number(value) };
            this.show(this.#run);
          },
        },
      });
    return h(
      'div',
      { class: 'tb-bar' },
      dropdown(
        t('Task'),
        [
          { value: all, label: t('All tasks') },
          ...v.families.map((f) => ({
            value: f.family,
            label: t('{0}: {1}', shortFamily(f.family), failureWords(f.failures)),
          })),
        ],
        this.#family,
        (family) => {
          this.#family = family;
          this.show(this.#run);
        },
      ),
      h('span', { class: 'ds-quiet' }, t('Policy versions')),
      version('min', t('from')),
      version('max', t('to')),
      h('span', { class: 'ds-spring' }),
      h(
        'p',
        { class: 'ds-quiet', role: 'status' },
        busy
          ? t('Comparing…')
          : withOlder(
              v.looked < v.failures
                ? t('The newest {0} of {1} failures', whole(v.looked), whole(v.failures))
                : failureWords(v.failures),
              v.older,
            ),
      ),
      h(
        'span',
        { class: 'tb-key ds-quiet' },
        legendMark('did'),
        t('what it did'),
        ' ',
        legendMark('expected'),
        t('what a success does there'),
      ),
    );
  }
  #cluster(c: FailureCluster, v: FailuresView): HTMLElement {
    const words = clusterWords(c),
      share = c.rollouts.length / Math.max(1, v.looked),
      first = c.exemplars.find((e) => e.success !== undefined);
    return h(
      'li',
      { class: 'tb-cluster' },
      h(
        'div',
        { class: 'tb-cluster-words' },
        h(
          'h2',
          null,
          h('span', { class: 'tb-cluster-n number' }, whole(c.rollouts.length)),
          ' ',
          h('span', { class: 'tb-cluster-what' }, words),
        ),
        h('div', { class: 'tb-share', 'aria-hidden': 'true' }, h('div', { style: { width: `${share * 100}%` } })),
        h('p', null, shortFamily(c.family)),
        h('p', { class: 'ds-quiet' }, clusterFacts(c)),
        h(
          'div',
          { class: 'tb-cluster-do' },
          button(t('List'), () => this.#actions.list({ rollouts: c.rollouts }), {
            icon: 'list-unordered',
            title: t('List these {0} trajectories', c.rollouts.length),
          }),
          first
            ? button(
                t('Compare'),
                () => this.#host.act({ action: 'compare', run: this.#run, left: first.rollout, right: first.success! }),
                { icon: 'diff', title: t('Compare one of them with a success') },
              )
            : undefined,
        ),
      ),
      h(
        'ul',
        { class: 'tb-exemplars' },
        c.exemplars.map((e) => h('li', null, this.#exemplar(e))),
      ),
    );
  }
  #exemplar(e: FailureExemplar): HTMLElement {
    const [did, expected] = [pointOf(e.action), pointOf(e.expected)],
      words = e.action ? actionsWords([e.action]) : t('had ended');
    return h(
      'button',
      {
        type: 'button',
        class: 'tb-exemplar',
        title: e.expected ? t('{0}; a success: {1}', words, actionsWords([e.expected])) : words,
        'aria-label': t('Step {0} of {1}: {2}', e.step + 1, e.rollout, words),
        on: { click: () => this.#open(e.rollout, e.step) },
      },
      this.#thumbs.picture(e.frame, [
        ...(expected ? [{ at: expected, kind: 'expected' as const }] : []),
        ...(did ? [{ at: did, kind: 'did' as const }] : []),
      ]),
      h('span', { class: 'tb-exemplar-words' }, words),
    );
  }
  #open(rollout: string, step: number): void {
    this.#host.act({ action: 'openTrajectory', run: this.#run, rollout, step });
  }
}
