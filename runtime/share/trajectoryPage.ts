import type { FrameLink, StepView, TokenView, TrajectoryView } from '../domain/index.js';
import { duration } from '../domain/stats.js';
import { facts, figure, finite, pageText, table, text } from './html.js';
import { markOf } from './marks.js';
import { albumOf, definitions, shown, type Album, type ReadFrame } from './pictures.js';
import { STEPS_SCRIPT } from './script.js';
import { STYLE } from './style.js';
import { actionsWords, clip, moment, originWords, outcomeWords } from './words.js';

/** Characters of the pictures of one trajectory: with its words the page stays below 5 MB. */
export const TRAJECTORY_PICTURES = 4_000_000;
/** Steps, and characters of one text, that a page shows: a file of strangers may have any number. */
const MOST_STEPS = 1000,
  MOST_TEXT = 4000,
  MOST_TOKENS = 400;
/** Characters of all that is said: thoughts, tokens. */
const WORDS = 600_000;
/** Share of the steps that are marked, as in the inspector (webview/README.md#high-entropy-marks). */
const HIGH_SHARE = 0.2;

export interface TrajectoryPage {
  readonly html: string;
  /** Screens are so many times smaller than on the desktop. */
  readonly scale: number;
  readonly steps: number;
  /** Screens that are not in it. */
  readonly without: number;
}

/** One trajectory as a page in one file. `runName`: what its run is called. */
export async function trajectoryPage(
  t: TrajectoryView,
  o: { readonly runName?: string; readonly read: ReadFrame; readonly budget?: number },
): Promise<TrajectoryPage> {
  const steps = t.steps.slice(0, MOST_STEPS),
    album = await albumOf(framesOf(steps), o.read, o.budget ?? TRAJECTORY_PICTURES);
  return {
    html: pageText({
      title: `${t.row.instruction || t.row.rollout} (${outcomeWords[t.row.outcome] ?? ''})`,
      style: STYLE,
      script: STEPS_SCRIPT,
      body: body(t, steps, album, o.runName),
    }),
    scale: album.scale,
    steps: steps.length,
    without: album.gone + album.left,
  };
}
const framesOf = (steps: readonly StepView[]): FrameLink[] =>
  steps.flatMap((s, i) => [s.frame, ...(i === steps.length - 1 && s.after ? [s.after] : [])]);

function body(t: TrajectoryView, steps: readonly StepView[], album: Album, runName: string | undefined): string {
  const high = highSteps(steps, t.threshold),
    last = steps.at(-1)?.after;
  let room = WORDS;
  const sections = steps.map((s, i) => {
    const said =
      room > 0 ? details(s) : '<p class="dim">What was sampled is left out: this trajectory says too much.</p>';
    room -= said.length;
    return step(s, i, { high: high.has(i), picture: shown(album.of.get(s.frame.hash), alt(s, i), marks(s)), said });
  });
  return `${definitions(album)}<header>${heading(t, runName)}</header>
<main>
<h2>Steps</h2>
<div class="bar"><button id="previous" type="button" title="Left arrow">Previous</button><button id="next" type="button" title="Right arrow">Next</button><button id="marks" type="button" aria-pressed="true" title="m">Marks</button><span id="where" role="status" aria-live="polite"></span></div>
<div class="viewer"><div>${sections.join('\n') || '<p>It has no steps.</p>'}</div>
<nav aria-label="Steps"><ol>${steps
    .map(
      (s, i) =>
        `<li><a href="#s${i + 1}">${i + 1}. ${text(clip(actionsWords(s.actions), 120))}${high.has(i) ? ' <b title="high entropy">◆</b>' : ''}</a></li>`,
    )
    .join('')}</ol></nav></div>
${last ? `<details><summary>Last screen</summary>${shown(album.of.get(last.hash), 'Screen after the last step')}</details>` : ''}
${verdict(t)}</main>
<footer>${notes(t, steps, album)}<p>Keys: ← → or j k step, Home End, n p next and previous high-entropy step (◆), m marks. Made by DART Studio; this file needs no network.</p></footer>`;
}

function heading(t: TrajectoryView, runName: string | undefined): string {
  const { row } = t,
    took = row.startedAt !== undefined && row.endedAt !== undefined ? row.endedAt - row.startedAt : undefined,
    versions =
      row.versions &&
      (row.versions[0] === row.versions[1] ? `v${row.versions[0]}` : `v${row.versions[0]} to v${row.versions[1]}`);
  return `<h1>${text(clip(row.instruction || row.rollout, MOST_TEXT))}</h1>${facts([
    [
      'Outcome',
      `<b class="${text(row.outcome)}">${text(outcomeWords[row.outcome] ?? row.outcome)}</b>${row.truncated ? ' (hit the step limit)' : ''}`,
    ],
    ['Reward', figure(row.reward)],
    ['Task', text(row.task)],
    ['Steps', `${t.steps.length}${row.cap > 0 ? ` of at most ${figure(row.cap, 6)}` : ''}`],
    ['Origin', text(originWords[row.provenance] ?? row.provenance)],
    ['Relabelled from', text(clip(row.relabelledFrom ?? '', MOST_TEXT))],
    ['Policy version', text(versions ?? '')],
    ['Advantage', figure(t.advantage)],
    ['Mean entropy', figure(row.entropy)],
    ['Began', text(moment(finite(row.startedAt)))],
    ['Took', finite(took) === undefined ? '' : text(duration(took!))],
    ['Trajectory', `<code>${text(row.rollout)}</code>`],
    ['Run', text(runName)],
  ])}`;
}

function verdict({ report, error }: TrajectoryView): string {
  if (error)
    return `<h2>Error</h2><p class="error">${text(clip(error.message, MOST_TEXT))}</p><p>${text(clip(error.remedy, MOST_TEXT))}</p>`;
  if (!report || report.checks.length === 0) return '';
  return `<h2>Verdict</h2>${table(
    'What the verifier looked at',
    ['Check', 'Expected', 'Found', 'Score'],
    report.checks
      .slice(0, 100)
      .map((c) => [c.what, c.expected, c.found].map((x) => text(clip(String(x), 500))).concat(figure(c.score))),
  )}`;
}

const alt = (s: StepView, i: number): string => text(`Step ${i + 1} screenshot: ${clip(actionsWords(s.actions), 300)}`);
const marks = (s: StepView): string => s.actions.map(markOf).join('');

const by = (s: StepView): string =>
  s.declined
    ? ', chosen by a person'
    : s.origin === 'policy'
      ? ''
      : s.origin === 'human'
        ? ', by a person'
        : ', scripted';

function step(
  s: StepView,
  i: number,
  o: { readonly high: boolean; readonly picture: string; readonly said: string },
): string {
  const did = text(clip(actionsWords(s.actions), 600));
  return `<section class="step" id="s${i + 1}" data-did="${did}"${o.high ? ' data-high="1"' : ''} aria-label="Step ${i + 1}">
<h3>Step ${i + 1}${by(s)}</h3>
${o.picture}
<p class="did"><b>${did}</b></p>${o.said}</section>`;
}

function details(s: StepView): string {
  const kept = s.kept === undefined ? '' : s.kept ? 'kept' : 'left out of training',
    thought = s.thought ? `<p class="thought">${text(clip(s.thought, MOST_TEXT))}</p>` : '';
  return `${thought}${facts([
    ['Entropy', `${s.entropyBound === 'lower' && s.entropy !== undefined ? 'at least ' : ''}${figure(s.entropy)}`],
    ['Curation', kept],
    ['Advantage', figure(s.advantage)],
    ['Importance weight', figure(s.weight)],
    ['Policy version', s.version === undefined ? '' : `v${figure(s.version, 9)}`],
    ['Answer ended', s.finish === 'length' ? 'cut off: no tokens were left' : text(clip(s.finish ?? '', 60))],
    ['Decided in', milliseconds(s.timings?.decide)],
    ['Settled in', milliseconds(s.timings?.settle)],
  ])}${tokens(s.tokens)}${(s.rejected ?? [])
    .slice(0, 5)
    .map(
      (r) =>
        `<details><summary>Rejected answer: ${text(clip(r.reason, 200))}</summary><pre>${text(clip(r.text, MOST_TEXT))}</pre></details>`,
    )
    .join('')}`;
}
const milliseconds = (ms: unknown): string => (finite(ms) === undefined ? '' : `${figure(ms)} ms`);

function tokens(of: readonly TokenView[] | undefined): string {
  if (!of || of.length === 0) return '';
  const rows = of.slice(0, MOST_TOKENS).map((k) => [
    `<code>${text(clip(k.label, 80))}</code>`,
    finite(k.logprob) === undefined ? '' : `${figure(100 * Math.exp(k.logprob!))} %`,
    figure(k.entropy),
    figure(k.weight),
    text(
      (k.alternatives ?? [])
        .slice(0, 5)
        .map((a) => `${clip(a.label, 40)} ${figure(100 * a.probability, 2)} %`)
        .join(', '),
    ),
  ]);
  return `<details><summary>${of.length === 1 ? 'One sampled choice' : `${of.length} sampled choices`}</summary>${table(
    of.length > MOST_TOKENS ? `The first ${MOST_TOKENS}` : 'In the order in which they were sampled',
    ['Choice', 'Probability', 'Entropy', 'Weight', 'Alternatives'],
    rows,
  )}</details>`;
}

function highSteps(steps: readonly StepView[], threshold: number | undefined): ReadonlySet<number> {
  const known = steps.flatMap((s) => finite(s.entropy) ?? []).sort((a, b) => b - a),
    cut = known[Math.max(0, Math.ceil(known.length * HIGH_SHARE) - 1)];
  return new Set(
    steps.flatMap((s, i) => {
      const e = finite(s.entropy);
      return e !== undefined && cut !== undefined && e > 0 && e >= cut && e >= (threshold ?? 0) ? [i] : [];
    }),
  );
}

/** Notes on what the file does not show, so that nobody takes it for all there was. */
function notes(t: TrajectoryView, steps: readonly StepView[], album: Album): string {
  return [
    album.scale > 1
      ? `Screens are ${album.scale} times smaller in width and height than they were, so that the file stays small.`
      : '',
    album.gone > 0 ? `${album.gone} screens could not be read.` : '',
    album.left > 0 ? `${album.left} screens are left out, so that the file stays small.` : '',
    t.steps.length > steps.length ? `Only the first ${steps.length} of ${t.steps.length} steps are shown.` : '',
    t.live ? 'It was still running when this file was made.' : '',
  ]
    .filter(Boolean)
    .map((s) => `<p>${s}</p>`)
    .join('');
}
