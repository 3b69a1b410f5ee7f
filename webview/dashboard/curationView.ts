/** The data on its way to the trainer: the charts of each curation mechanism, importance weights, corrections. */
import type { CurationChart, TableFilter } from '../../runtime/protocol/types.js';
import type { Chart } from '../ui/chart.js';
import type { Painter } from '../ui/chartPainter.js';
import type { ChartSpec } from '../ui/chartSpec.js';
import { h, replace } from '../ui/dom.js';
import { dropdown } from '../ui/toolkit.js';
import { fromDaemon, t } from '../ui/words.js';
import { behindMetric } from './behind.js';
import { curationSpec, familiesOf, tisSpec } from './curationSpecs.js';
import { shortFamily } from './format.js';
import type { Model } from './model.js';
import { titledChart } from './parts.js';
import { correctionCharts } from './metricCharts.js';
import { metricSpec } from './specs.js';

const all = '*';
interface Part {
  readonly chart: Chart;
  readonly spec: (m: Model) => ChartSpec;
  readonly of: 'curation' | 'series';
  readonly shown?: (m: Model) => boolean;
}
const chartsOf = (m: Model): readonly CurationChart[] => m.curation?.charts ?? [];
const overTime = (c: CurationChart): boolean => c.data.form === 'families' || c.data.form === 'series';

export class CurationSection {
  readonly element: HTMLElement;
  readonly #painter: Painter;
  /** Parts of the mechanisms, by the charts they describe; made when these are known. */
  #described: readonly Part[] = [];
  #describedIds = '';
  /** Parts of the trainer's corrections. */
  readonly #corrections: readonly Part[];
  readonly #pick = h('div', { class: 'pick' });
  /** The first answer tells which charts exist; until then their space is reserved. */
  readonly #charts = h('div', { class: 'charts pending' });
  readonly #chosen: (family: string | undefined) => void;
  readonly #open: (f: TableFilter) => void;
  #family: string | undefined;
  #families = '';
  #m: Model | undefined;

  /** `open`: the list behind a point or a bar. */
  constructor(
    painter: Painter,
    family: string | undefined,
    chosen: (family: string | undefined) => void,
    open: (f: TableFilter) => void,
  ) {
    this.#painter = painter;
    this.#family = family;
    this.#chosen = chosen;
    this.#open = open;
    this.#corrections = [
      {
        chart: titledChart({
          title: t('Importance weight histogram'),
          says: t(
            'Truncated importance weights of the tokens of the newest updates: probability under the trained policy over that under the one that acted, at most trainer.tis.cap.',
          ),
          painter,
        }),
        spec: tisSpec,
        of: 'curation',
      },
      ...correctionCharts.map((c): Part => ({
        chart: titledChart({ title: c.title, says: c.says, painter, sync: 'run', open }),
        spec: (m) => ({ ...metricSpec(m, c), behind: behindMetric(m, c) }),
        of: 'series',
        ...(c.optional ? { shown: (m) => m.series.has(c.lines[0]!.name) } : {}),
      })),
    ];
    this.#show();
    this.element = h('div', null, this.#pick, this.#charts);
  }
  render(m: Model, old: Model | undefined): void {
    this.#m = m;
    this.#charts.classList.toggle('pending', m.curation === undefined);
    const changed = { curation: !old || m.curation !== old.curation, series: !old || m.series !== old.series },
      moved = m.detail?.summary.createdAt !== old?.detail?.summary.createdAt,
      added = changed.curation && this.#describe(m);
    if (changed.curation) this.#picker(m);
    for (const c of this.#corrections) c.chart.element.hidden = c.shown?.(m) === false;
    for (const c of this.#described) if (changed.curation || moved || added) c.chart.update(c.spec(m));
    for (const c of this.#corrections) if (changed[c.of] || moved) c.chart.update(c.spec(m));
  }
  retheme(): void {
    for (const c of [...this.#described, ...this.#corrections]) c.chart.retheme();
  }

  /** Makes a chart for each that the daemon describes; they differ only between runs of different versions. */
  #describe(m: Model): boolean {
    const charts = chartsOf(m),
      ids = charts.map((c) => c.id).join(' ');
    if (ids === this.#describedIds) return false;
    this.#describedIds = ids;
    this.#described = charts.map((c): Part => ({
      chart: titledChart({
        title: fromDaemon(c.words.title),
        says: fromDaemon(c.words.says),
        painter: this.#painter,
        ...(overTime(c) ? { sync: 'run' } : {}),
        ...(c.data.form === 'bars' && c.data.behind ? { open: this.#open } : {}),
      }),
      spec: (now) => {
        const newest = chartsOf(now).find((x) => x.id === c.id) ?? c;
        return curationSpec(now, newest, this.#family);
      },
      of: 'curation',
    }));
    this.#show();
    return true;
  }
  #show(): void {
    replace(
      this.#charts,
      [...this.#described, ...this.#corrections].map((c) => c.chart.element),
    );
  }
  #picker(m: Model): void {
    const families = familiesOf(chartsOf(m)),
      key = families.join('\n');
    if (key === this.#families) return;
    this.#families = key;
    if (this.#family && !families.includes(this.#family)) this.#family = undefined;
    replace(
      this.#pick,
      families.length === 0
        ? undefined
        : [
            h('span', null, t('Task:')),
            dropdown(
              t('Task of the charts of group size and max steps'),
              [{ value: all, label: t('all tasks') }, ...families.map((f) => ({ value: f, label: shortFamily(f) }))],
              this.#family ?? all,
              (v) => {
                this.#family = v === all ? undefined : v;
                this.#chosen(this.#family);
                if (this.#m) for (const c of this.#described) c.chart.update(c.spec(this.#m), true);
              },
            ),
          ],
    );
  }
}
