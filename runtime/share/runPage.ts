import { RETIRE_WORDS } from './retired.js';
import { counted } from '../domain/counted.js';
import type { FrameLink, TrajectoryView } from '../domain/index.js';
import { duration, percent, rateText } from '../domain/stats.js';
import type { EvalPoint, RunDetail, RunFootprint, Series, SuccessCurve, TaskRow } from '../protocol/types.js';
import type { RunFigures } from '../run/figures.js';
import { figuresSection } from './figures.js';
import { facts, figure, pageText, table, text } from './html.js';
import { albumOf, definitions, shown, type Album, type ReadFrame } from './pictures.js';
import { markOf } from './marks.js';
import { metricPlots } from './metricPlots.js';
import { plot, type PlotSeries } from './plot.js';
import { STYLE } from './style.js';
import { actionsWords, megabytes, moment, originWords } from './words.js';

/** The data of a run's page, read by whoever has the run. */
export interface RunPageData {
  readonly detail: Pick<RunDetail, 'summary' | 'ledger' | 'evals' | 'tasks' | 'timeline'>;
  readonly curves: readonly SuccessCurve[];
  readonly series: readonly Series[];
  /** The run file that makes the same configuration. */
  readonly runFile: string;
  readonly footprint?: RunFootprint;
  /** Episodes of the newest evaluation, or training rollouts where there was none. */
  readonly examples: { readonly success: readonly TrajectoryView[]; readonly failure: readonly TrajectoryView[] };
  /** Measured afterwards on everything held out. */
  readonly figures?: RunFigures;
  /** ms since the epoch. */
  readonly madeAt: number;
}
export interface RunPage {
  readonly html: string;
  readonly scale: number;
  readonly without: number;
}

/** Screens of one example, and characters of all pictures. */
const SCREENS = 8,
  PICTURES = 3_000_000;
const MOST_TASKS = 500,
  MOST_CONFIG = 60_000;

/** A run as a page in one file, without a script. */
export async function runPage(d: RunPageData, read: ReadFrame): Promise<RunPage> {
  const examples = [...d.examples.success, ...d.examples.failure],
    album = await albumOf(examples.flatMap(screensOf), read, PICTURES),
    { summary } = d.detail;
  return {
    html: pageText({ title: `${summary.name} (DART Studio)`, style: STYLE, body: body(d, album) }),
    scale: album.scale,
    without: album.gone + album.left,
  };
}
const screensOf = (t: TrajectoryView): FrameLink[] => t.steps.slice(0, SCREENS).map((s) => s.frame);

function body(d: RunPageData, album: Album): string {
  return `${definitions(album)}<header>${heading(d)}</header>
<main>${d.figures ? figuresSection(d.figures) : ''}
<h2>Curves</h2><div class="charts">${successPlot(d)}${metricPlots(d.series, d.detail.summary.createdAt)}</div>
${evaluations(d.detail.evals)}
${tasks(d.detail.tasks)}
${ledger(d)}
<h2>Examples of success</h2>${stories(d.examples.success, album)}
<h2>Examples of failure</h2>${stories(d.examples.failure, album)}
<h2>Configuration</h2><details><summary>Run file</summary><pre>${text(d.runFile.slice(0, MOST_CONFIG))}</pre></details></main>
<footer>${album.scale > 1 ? `<p>Screens are ${text(album.scale)} times smaller in width and height than they were.</p>` : ''}<p>Intervals are 95 % of the episodes shown; another seed is another run. Made by DART Studio on ${text(moment(d.madeAt))}; this file needs no network.</p></footer>`;
}

const rate = (e: Pick<EvalPoint, 'successes' | 'episodes'>): string => text(rateText(e.successes, e.episodes));
function heading({ detail, footprint, curves, figures, madeAt }: RunPageData): string {
  const { summary: s, ledger: l, timeline } = detail,
    last = detail.evals.at(-1),
    ended = Math.max(...detail.evals.map((e) => e.at), ...curves.map((c) => c.at.at(-1) ?? 0), 0),
    away = timeline.outages.reduce((n, o) => n + o.to - o.from, 0),
    machine = figures
      ? `${figures.machine.cpu}, ${figures.machine.cores} cores`
      : footprint &&
        `${footprint.machine.processor}, ${footprint.machine.cores} cores, ${Math.round(footprint.machine.memoryBytes / 2 ** 30)} GiB`;
  return `<h1>${text(s.name)}</h1>${s.label?.notes ? `<p>${text(s.label.notes.slice(0, 4000))}</p>` : ''}${facts([
    ['Newest evaluation', last && `<b>${rate(last)}</b> of ${text(last.episodes)}, v${text(last.version)}`],
    ['State', text(s.state)],
    ['Began', text(moment(s.createdAt))],
    ['Worked', ended > s.createdAt ? text(duration(Math.max(0, ended - s.createdAt - away))) : ''],
    ['Rollouts', text(l.begun ?? s.rollouts)],
    ['Policy version', `v${text(s.version)}`],
    ['Parameters', footprint?.parameters === undefined ? '' : text(footprint.parameters.toLocaleString('en'))],
    ['Seed', s.seed === undefined ? '' : text(s.seed)],
    ['Run', `<code>${text(s.id)}</code>`],
    ['On disk', footprint && text(megabytes(footprint.bytes))],
    [s.state === 'running' || figures ? 'Machine' : 'Machine of this page', machine === undefined ? '' : text(machine)],
    ['Tags', text((s.label?.tags ?? []).join(', '))],
    ['As of', s.state === 'running' ? text(moment(madeAt)) : ''],
  ])}${s.error ? `<p class="error">${text(s.error.message)}</p>` : ''}`;
}

/** The curve without its first few rollouts, whose mean jumps from 0 to 1 and says nothing. */
function settled(c: SuccessCurve): SuccessCurve {
  const i = c.rollout.length > 40 ? c.rollout.findIndex((r) => r >= 8) : 0,
    from = (xs: readonly number[]): readonly number[] => xs.slice(Math.max(0, i));
  return { ...c, at: from(c.at), rollout: from(c.rollout), mean: from(c.mean), low: from(c.low), high: from(c.high) };
}
function successPlot({ detail, curves }: RunPageData): string {
  const origin = detail.summary.createdAt,
    evals = detail.evals.filter((e) => e.episodes > 0),
    training = curves.filter((c) => c.family === undefined),
    series: PlotSeries[] = [];
  if (evals.length > 0)
    series.push({
      label: 'evaluation, fixed tasks, 95 %',
      points: true,
      x: evals.map((e) => e.at - origin),
      y: evals.map((e) => e.successes / e.episodes),
      low: evals.map((e) => e.low),
      high: evals.map((e) => e.high),
    });
  for (const c of training.map(settled))
    series.push({
      label: `training rollouts${c.infeasible ? ', infeasible tasks' : ''}, ${c.balanced && c.balanced.families > 1 ? `mean of ${c.balanced.families} tasks, newest ${c.balanced.each} each` : `newest ${c.window}`}`,
      x: c.at.map((t) => t - origin),
      y: c.mean,
      low: c.low,
      high: c.high,
    });
  return plot({
    title: 'Success',
    says: 'Evaluations are always of the same tasks, and lead. Training success is the mean over tasks, each by its newest rollouts.',
    series,
    x: { label: 'time since the run began', format: duration },
    y: { format: (v) => percent(v), range: [0, 1] },
    wide: true,
  });
}

const evaluations = (evals: readonly EvalPoint[]): string =>
  `<h2>Evaluations</h2>${
    table(
      'Fixed episodes, each choice the most probable one; success with its 95 % interval',
      ['Evaluation', 'Policy', 'Success', 'Episodes', 'Errors', 'When'],
      evals.map((e) => [
        text(e.label),
        `v${text(e.version)}`,
        rate(e),
        text(e.episodes),
        text(e.errors),
        text(moment(e.at)),
      ]),
    ) || '<p>None.</p>'
  }`;

function tasks(rows: readonly TaskRow[]): string {
  const shownRows = rows.slice(0, MOST_TASKS);
  return `<h2>Tasks</h2>${
    table(
      rows.length > shownRows.length ? `The first ${MOST_TASKS} of ${rows.length}` : 'Success with its 95 % interval',
      ['Task', 'Newest evaluation', 'Training rollouts', 'Mean steps', 'What is asked'],
      shownRows.map((r) => [
        text(r.family),
        r.evaluation ? `${rate(r.evaluation)} of ${text(r.evaluation.episodes)}` : '',
        r.rollouts > 0 ? `${rate({ successes: r.successes, episodes: r.rollouts })} of ${text(r.rollouts)}` : '',
        figure(r.meanSteps),
        text((r.title ?? '').slice(0, 300)),
      ]),
    ) || '<p>None.</p>'
  }`;
}

function ledger({ detail: { ledger: l, summary } }: RunPageData): string {
  return `<h2>Ledger</h2>${table(
    'Where every rollout went',
    ['Rollouts', 'Number'],
    [
      ['planned', text(l.generated)],
      ['trained', text(l.trained)],
      [
        summary.state === 'running' || summary.state === 'elsewhere' ? 'in flight' : 'not trained when the run ended',
        text(l.inFlight),
      ],
      ...Object.entries(l.retired).map(([reason, n]) => [`retired: ${text(RETIRE_WORDS[reason] ?? reason)}`, text(n)]),
    ],
  )}`;
}

function stories(of: readonly TrajectoryView[], album: Album): string {
  if (of.length === 0) return '<p>None.</p>';
  return of
    .map((t) => {
      const steps = t.steps.slice(0, SCREENS),
        more = t.steps.length - steps.length,
        cells = steps.map(
          (s, i) =>
            `<figure>${shown(album.of.get(s.frame.hash), text(`Step ${i + 1} screenshot`), s.actions.map(markOf).join(''))}<figcaption>${i + 1}. ${text(actionsWords(s.actions).slice(0, 300))}</figcaption></figure>`,
        );
      return `<h3>${text(t.row.instruction.slice(0, 1000))}</h3><p class="dim">${text(t.row.task)}, ${text(originWords[t.row.provenance] ?? '')} <code>${text(t.row.rollout)}</code>, ${text(counted(t.steps.length, 'step'))}${more > 0 ? `, the first ${steps.length} shown` : ''}</p><div class="strip" tabindex="0" role="group" aria-label="${text(t.row.instruction.slice(0, 200))}">${cells.join('')}</div>`;
    })
    .join('\n');
}
