/** The changes of a held-out task's episodes over successive policy versions, as film strips step by step. */
import type { EpisodeStrip, OutcomeKind } from '../../runtime/protocol/types.js';
import { shortFamily } from '../dashboard/format.js';
import { outcomeIcons } from '../inspector/header.js';
import { verdictLower, verdictWords } from '../inspector/verdict.js';
import { actionName, actionsWords } from '../ui/actions.js';
import { emptyState } from '../ui/banner.js';
import { h, icon, replace, set } from '../ui/dom.js';
import { hostErrorOf, type Host } from '../ui/host.js';
import { roving } from '../ui/roving.js';
import { button, progress } from '../ui/toolkit.js';
import { steps, t } from '../ui/words.js';
import type { Rows } from './rows.js';
import { firstDifference, histories, sameHistories, shownAttempts, type Attempt, type TaskHistory } from './strips.js';
import { pointOf, Thumbs } from './thumbs.js';

const mostTasks = 400;

/** An attempt whose steps were read. */
interface Known {
  readonly a: Attempt;
  readonly strip: EpisodeStrip;
}
export class Changes {
  readonly element = h('section', {
    class: 'tb-changes',
    role: 'tabpanel',
    id: 'tb-view-changes',
    'aria-labelledby': 'tb-tab-changes',
  });
  readonly #host: Host<'table'>;
  readonly #thumbs: Thumbs;
  readonly #tasks = h('div', { class: 'tb-tasks', role: 'listbox', 'aria-label': t('Evaluation tasks') });
  readonly #film = h('div', { class: 'tb-film' });
  #run = '';
  #shown = -1;
  /** The shown histories; undefined while the run is read. */
  #all: readonly TaskHistory[] | undefined;
  #task: string | undefined;
  /** Attempts of the shown task when it was read. */
  #attempts = 0;
  #asking: AbortController | undefined;

  constructor(host: Host<'table'>) {
    this.#host = host;
    this.#thumbs = new Thumbs(host);
    roving(this.#tasks, '[role=option]');
  }
  show(run: string, rows: Rows, done: boolean): void {
    if (run !== this.#run) {
      this.#run = run;
      this.#task = undefined;
      this.#shown = -1;
      this.#all = undefined;
      this.#thumbs.open(run);
    }
    if (!done) {
      this.#shown = -1;
      this.#all = undefined;
      replace(this.element, progress(t('Loading run…')));
      return;
    }
    if (rows.revision === this.#shown) return;
    this.#shown = rows.revision;
    const all = histories(rows);
    // A run that goes on changes its rows all the time, its evaluations seldom.
    if (this.#all && sameHistories(this.#all, all)) return;
    this.#all = all;
    if (all.length === 0) {
      replace(
        this.element,
        emptyState(
          'history',
          t('Nothing to compare yet'),
          t('Evaluations of at least two policy versions on the same tasks are shown here.'),
        ),
      );
      return;
    }
    if (!this.element.contains(this.#tasks)) replace(this.element, this.#tasks, this.#film);
    this.#drawTasks(all);
    const mine = all.find((x) => x.task === this.#task) ?? all[0]!;
    if (mine.task !== this.#task || mine.attempts.length !== this.#attempts) this.#choose(mine.task);
  }

  #drawTasks(all: readonly TaskHistory[]): void {
    const focused = document.activeElement,
      task = focused instanceof HTMLElement && this.#tasks.contains(focused) ? focused.dataset['task'] : undefined;
    replace(
      this.#tasks,
      all.slice(0, mostTasks).map((x) =>
        h(
          'button',
          {
            type: 'button',
            class: 'tb-history',
            role: 'option',
            'aria-selected': String(x.task === this.#task),
            title: x.instruction,
            data: { task: x.task },
            on: { click: () => this.#choose(x.task) },
          },
          h('span', { class: 'tb-history-name' }, shortFamily(x.task)),
          h(
            'span',
            {
              class: 'tb-dots',
              role: 'img',
              'aria-label': x.attempts.map((a) => `v${a.version} ${verdictLower(a.outcome, a.reward)}`).join(', '),
            },
            x.attempts.slice(-24).map((a) => outcomeIcon(a.outcome)),
          ),
        ),
      ),
    );
    if (task !== undefined)
      this.#options()
        .find((b) => b.dataset['task'] === task)
        ?.focus();
  }
  #options(): HTMLElement[] {
    return [...this.#tasks.querySelectorAll<HTMLElement>('[role=option]')];
  }
  #choose(task: string): void {
    this.#task = task;
    for (const b of this.#options()) set(b, { 'aria-selected': String(b.dataset['task'] === task) });
    const history = this.#all?.find((x) => x.task === task);
    if (!history) return;
    this.#attempts = history.attempts.length;
    void this.#load(history);
  }
  async #load(history: TaskHistory): Promise<void> {
    this.#asking?.abort();
    const asking = (this.#asking = new AbortController()),
      attempts = shownAttempts(history);
    replace(this.#film, progress(t('Loading episodes…')));
    try {
      const { strips } = await this.#host.request(
        'trajectory/strips',
        { run: this.#run, rollouts: attempts.map((a) => a.rollout) },
        asking.signal,
      );
      if (!asking.signal.aborted) this.#draw(history, attempts, strips);
    } catch (e) {
      if (asking.signal.aborted) return;
      const error = hostErrorOf(e);
      replace(
        this.#film,
        emptyState(
          'error',
          error.message,
          error.remedy,
          button(t('Try again'), () => void this.#load(history), { icon: 'refresh' }),
        ),
      );
    }
  }

  #draw(history: TaskHistory, attempts: readonly Attempt[], strips: readonly EpisodeStrip[]): void {
    const known = attempts.flatMap((a) => {
        const strip = strips.find((s) => s.rollout === a.rollout);
        return strip ? [{ a, strip }] : [];
      }),
      omitted = history.attempts.length - attempts.length;
    replace(
      this.#film,
      h(
        'header',
        { class: 'tb-film-head' },
        h('h2', { dir: 'auto' }, history.instruction || shortFamily(history.task)),
        h(
          'p',
          { class: 'ds-quiet' },
          [
            shortFamily(history.task),
            turnWords(history),
            omitted > 0 ? t('{0} versions in between are left out', omitted) : '',
          ]
            .filter(Boolean)
            .join(' · '),
        ),
      ),
      h(
        'div',
        { class: 'tb-strips', tabindex: 0, role: 'region', 'aria-label': t('Episodes by policy version') },
        known.map(({ a, strip }, i) => this.#strip(a, strip, known[i - 1])),
      ),
    );
  }
  #strip(a: Attempt, strip: EpisodeStrip, before: Known | undefined): HTMLElement {
    const differs = before && firstDifference(before.strip, strip);
    return h(
      'section',
      { class: 'tb-strip', 'data-rollout': a.rollout, 'aria-label': t('Policy version {0}', a.version) },
      this.#stripHead(a, strip, before, differs),
      h(
        'ol',
        { class: 'tb-strip-steps', role: 'list' },
        strip.steps.map((_, k) => h('li', null, this.#shot(a, strip, k, before, differs))),
        strip.last
          ? h(
              'li',
              null,
              h(
                'div',
                { class: 'tb-shot end' },
                this.#thumbs.picture(strip.last),
                h('span', { class: 'tb-shot-words ds-quiet' }, t('the end')),
              ),
            )
          : undefined,
      ),
    );
  }
  #stripHead(a: Attempt, strip: EpisodeStrip, before: Known | undefined, differs: number | undefined): HTMLElement {
    return h(
      'div',
      { class: 'tb-strip-head' },
      h('h3', null, `v${a.version}`),
      h('p', { class: 'ds-outcome' }, outcomeIcon(a.outcome), verdictWords(a.outcome, a.reward)),
      h('p', { class: 'ds-quiet' }, steps(strip.steps.length)),
      before
        ? h(
            'p',
            { class: 'ds-quiet' },
            differs === undefined ? t('same as v{0}', before.a.version) : t('differs from step {0}', differs + 1),
          )
        : undefined,
      before
        ? button(
            t('Compare'),
            () => this.#host.act({ action: 'compare', run: this.#run, left: before.a.rollout, right: a.rollout }),
            { icon: 'diff', title: t('Compare with v{0}', before.a.version) },
          )
        : undefined,
    );
  }
  /** Step `k` (from 0): its screen with where it acted, and what it did. */
  #shot(
    a: Attempt,
    strip: EpisodeStrip,
    k: number,
    before: Known | undefined,
    differs: number | undefined,
  ): HTMLElement {
    const { frame, actions } = strip.steps[k]!,
      first = k === differs,
      at = pointOf(actions[0]),
      words = actionsWords(actions),
      caption = `${k + 1} ${actions[0] ? actionName(actions[0]) : ''}`;
    return h(
      'button',
      {
        type: 'button',
        class: ['tb-shot', first && 'differs', differs !== undefined && k > differs && 'after'],
        title: words,
        'aria-label': [
          caption,
          t('Step {0}: {1}', k + 1, words),
          first ? t('first difference from v{0}', before!.a.version) : '',
        ]
          .filter(Boolean)
          .join(', '),
        on: {
          click: () => this.#host.act({ action: 'openTrajectory', run: this.#run, rollout: a.rollout, step: k }),
        },
      },
      this.#thumbs.picture(frame, at ? [{ at, kind: 'at' }] : []),
      h('span', { class: 'tb-shot-words' }, first ? icon('diff-modified') : undefined, caption),
    );
  }
}
const outcomeIcon = (o: OutcomeKind): HTMLElement =>
  h('span', { class: `codicon codicon-${outcomeIcons[o]} ${o}`, 'aria-hidden': 'true' });
function turnWords(x: TaskHistory): string {
  const learned = x.attempts[0]!.outcome !== 'success' && x.attempts.at(-1)!.outcome === 'success',
    lost = x.attempts[0]!.outcome === 'success' && x.attempts.at(-1)!.outcome !== 'success';
  return learned
    ? t('learned')
    : lost
      ? t('unlearned')
      : x.turns > 0
        ? t('changed back and forth')
        : t('the same outcome throughout');
}
