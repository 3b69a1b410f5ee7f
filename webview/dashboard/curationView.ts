/**
 * What became of the data on its way to the trainer: group sizes and caps, entropy mask, pool, importance weights,
 * staleness.
 */
import type { Chart } from '../ui/chart.js';
import type { Painter } from '../ui/chartPainter.js';
import type { ChartSpec } from '../ui/chartSpec.js';
import { h, replace } from '../ui/dom.js';
import { dropdown } from '../ui/toolkit.js';
import { t } from '../ui/words.js';
import { entropySpec, groupsSpec, injectionsSpec, keptSpec, stalenessSpec, tisSpec } from './curationSpecs.js';
import { shortFamily } from './format.js';
import type { Model } from './model.js';
import { titledChart } from './parts.js';
import { correctionCharts, metricSpec } from './specs.js';

const all = '*';
interface Part {
  readonly chart: Chart;
  readonly spec: (m: Model) => ChartSpec;
  readonly of: 'curation' | 'series';
}
export class CurationView {
  readonly element: HTMLElement;
  readonly #charts: readonly Part[];
  readonly #pick = h('div', { class: 'pick' });
  readonly #chosen: (family: string | undefined) => void;
  #family: string | undefined;
  #families = '';
  #m: Model | undefined;

  constructor(painter: Painter, family: string | undefined, chosen: (family: string | undefined) => void) {
    this.#family = family;
    this.#chosen = chosen;
    const make = (
      title: string,
      says: string,
      of: 'curation' | 'series',
      spec: (m: Model) => ChartSpec,
      timed = true,
    ): Part => ({ chart: titledChart({ title, says, painter, ...(timed ? { sync: 'run' } : {}) }), spec, of });
    this.#charts = [
      make(
        t('Rollouts per group (N)'),
        t(
          'Dynamic rollout number: a task that succeeds often gets fewer rollouts, down from 8, because most of them would teach nothing.',
        ),
        'curation',
        (m) => groupsSpec(m, 'size', this.#family),
      ),
      make(
        t('Length cap'),
        t(
          'Dynamic trajectory length: the longest success of a task so far plus a little slack. Longer rollouts of it would almost surely fail.',
        ),
        'curation',
        (m) => groupsSpec(m, 'cap', this.#family),
      ),
      make(
        t('Step entropy'),
        t(
          'Mean token entropy of each step of the newest rollouts. Steps below the 20th percentile of their group are not trained: there the policy did not hesitate. Bars are steps; bins are as wide as their edges say.',
        ),
        'curation',
        entropySpec,
        false,
      ),
      make(
        t('Share of steps kept'),
        t('Steps that were trained, of all steps of the groups formed.'),
        'curation',
        keptSpec,
      ),
      make(
        t('Pool injections'),
        t('Groups in which every rollout failed and an earlier success was added, running sum.'),
        'curation',
        injectionsSpec,
      ),
      make(
        t('Importance weight histogram'),
        t(
          'Truncated importance weights of the tokens of the newest updates: probability under the trained policy over that under the one that acted, cut at the cap.',
        ),
        'curation',
        tisSpec,
        false,
      ),
      make(
        t('Staleness'),
        t('How many updates the policy had moved on when a rollout was trained. Admission keeps it below the bound.'),
        'curation',
        stalenessSpec,
        false,
      ),
      ...correctionCharts.map((c) => make(c.title, c.says, 'series', (m) => metricSpec(m, c))),
    ];
    this.element = h(
      'div',
      null,
      this.#pick,
      h(
        'div',
        { class: 'charts' },
        this.#charts.map((c) => c.chart.element),
      ),
    );
  }
  render(m: Model, old: Model | undefined): void {
    this.#m = m;
    const changed = { curation: !old || m.curation !== old.curation, series: !old || m.series !== old.series },
      moved = m.detail?.summary.createdAt !== old?.detail?.summary.createdAt;
    if (changed.curation) this.#picker(m);
    for (const c of this.#charts) if (changed[c.of] || moved) c.chart.update(c.spec(m));
  }
  retheme(): void {
    for (const c of this.#charts) c.chart.retheme();
  }
  #picker(m: Model): void {
    const families = (m.curation?.groups ?? []).map((g) => g.family).sort(),
      key = families.join('\n');
    if (key === this.#families) return;
    this.#families = key;
    if (this.#family && !families.includes(this.#family)) this.#family = undefined;
    replace(
      this.#pick,
      families.length === 0
        ? undefined
        : [
            h('span', null, t('N and cap of')),
            dropdown(
              t('Task of the N and cap charts'),
              [{ value: all, label: t('all tasks') }, ...families.map((f) => ({ value: f, label: shortFamily(f) }))],
              this.#family ?? all,
              (v) => {
                this.#family = v === all ? undefined : v;
                this.#chosen(this.#family);
                if (this.#m) for (const c of this.#charts.slice(0, 2)) c.chart.update(c.spec(this.#m), true);
              },
            ),
          ],
    );
  }
}
