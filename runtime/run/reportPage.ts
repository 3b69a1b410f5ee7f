import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProcessEntry, RolloutId, Trajectory } from '../domain/index.js';
import { id } from '../domain/index.js';
import { percent, rateText } from '../domain/stats.js';
import { maxFrameBytes } from '../data/store/frames.js';
import { RunReader } from '../data/store/runStore.js';
import { readForeign } from '../files/foreignFile.js';
import type { FiguresRow, RunFigures } from './figures.js';

/** Episodes of the last evaluation that the page shows, of each outcome, and screens of each. */
const EXAMPLES = 3,
  SCREENS = 6;
/** Points of the curve of success. */
const CURVE = 120;

/** Writes `report.html` into the run folder: one file with pictures inside, which needs nothing else. Returns its path. */
export async function writeReport(dir: string, entry: ProcessEntry, figures: RunFigures): Promise<string> {
  const reader = await RunReader.open(dir, { index: entry }),
    file = join(dir, 'report.html');
  try {
    const [curve, good, bad] = await Promise.all([
      successCurve(reader),
      examples(reader, 'success'),
      examples(reader, 'failure'),
    ]);
    await writeFile(file, reportHtml(figures, { curve, good, bad }));
  } finally {
    await reader.close();
  }
  return file;
}

export interface Example {
  readonly instruction: string;
  readonly family: string;
  readonly outcome: string;
  readonly steps: readonly { readonly picture: string; readonly did: string }[];
}
/** Outcomes of training rollouts in the order in which they ended, as a moving mean of 64. */
export async function successCurve(reader: Pick<RunReader, 'index'>): Promise<number[]> {
  const [column = []] = await reader.index.columns(
    "SELECT outcome FROM rollouts WHERE provenance = 'rollout' AND outcome IN ('success', 'failure') ORDER BY ended_at",
  );
  const won = column.map((o) => (o === 'success' ? 1 : 0)),
    means: number[] = [];
  let sum = 0;
  won.forEach((w, i) => {
    sum += w - (won[i - 64] ?? 0);
    means.push(sum / Math.min(64, i + 1));
  });
  const every = Math.max(1, Math.ceil(means.length / CURVE));
  return means.filter((_, i) => i % every === every - 1 || i === means.length - 1);
}

async function examples(reader: RunReader, outcome: 'success' | 'failure'): Promise<Example[]> {
  const [ids = []] = await reader.index.columns(
    `SELECT id FROM rollouts WHERE provenance = 'probe' AND outcome = '${outcome}' AND id LIKE 'probe/final/%' ORDER BY family, id`,
  );
  const every = Math.max(1, Math.floor(ids.length / EXAMPLES)),
    out: Example[] = [];
  for (const rollout of ids.filter((_, i) => i % every === 0).slice(0, EXAMPLES)) {
    const t = await reader.readTrajectory(id<RolloutId>(String(rollout)));
    if (t) out.push(await exampleOf(reader, t));
  }
  return out;
}
async function exampleOf(reader: RunReader, t: Trajectory): Promise<Example> {
  const steps = await Promise.all(
    t.steps.slice(0, SCREENS).map(async (s) => {
      const png = await readForeign(reader.frames.path(s.frame), maxFrameBytes).catch(() => undefined);
      return {
        picture: png ? `data:image/png;base64,${png.toString('base64')}` : '',
        did: s.actions.map((a) => JSON.stringify(a)).join(' '),
      };
    }),
  );
  return { instruction: t.instruction, family: t.family, outcome: t.outcome.kind, steps };
}

const escape = (s: string): string =>
  s.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  `<table><thead><tr>${head.map((h) => `<th>${escape(h)}</th>`).join('')}</tr></thead><tbody>${rows
    .map((r) => `<tr>${r.map((c) => `<td>${escape(c)}</td>`).join('')}</tr>`)
    .join('')}</tbody></table>`;

const NAMES: Readonly<Record<FiguresRow['split'], string>> = {
  train: 'training tasks',
  heldout: 'other arrangements of the words of training',
  words: 'unseen words and numbers',
  pairs: 'unseen pairs of words',
  looks: 'other looks',
  near: 'unseen words among near-duplicates',
  templates: 'templates never trained on',
};
export const rowName = (r: Pick<FiguresRow, 'split' | 'sampled' | 'blind'>): string =>
  `${NAMES[r.split]}${r.sampled ? ', sampled' : ''}${r.blind ? ', screen blanked' : ''}`;

function chart(curve: readonly number[]): string {
  const width = 720,
    height = 180,
    x = (i: number): number => (curve.length < 2 ? 0 : (i / (curve.length - 1)) * width),
    line = curve.map((v, i) => `${x(i).toFixed(1)},${(height - v * height).toFixed(1)}`).join(' ');
  return `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="Success of training rollouts, moving mean of 64"><path d="M0 0H${width}M0 ${height / 2}H${width}M0 ${height}H${width}" stroke="#8884"/><polyline points="${line}" fill="none" stroke="#1a7f5a" stroke-width="2"/></svg>`;
}
const story = (e: Example): string =>
  `<figure><figcaption><b>${escape(e.instruction)}</b> <span>${escape(e.family)}, ${escape(e.outcome)}</span></figcaption><div class="steps">${e.steps
    .map((s) => `<div><img alt="" src="${s.picture}"><code>${escape(s.did)}</code></div>`)
    .join('')}</div></figure>`;

/** The page. Pure. */
export function reportHtml(
  f: RunFigures,
  x: { readonly curve: readonly number[]; readonly good: readonly Example[]; readonly bad: readonly Example[] },
): string {
  const removed = f.failures_removed_by_rl_interval,
    families = f.rows.find((r) => r.split === 'heldout' && !r.sampled && !r.blind)?.perFamily ?? {},
    blind = f.rows.find((r) => r.split === 'heldout' && r.blind)?.perFamily ?? {};
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'"><title>${escape(f.run)}</title>
<style>body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}table{border-collapse:collapse}th,td{text-align:left;padding:.2rem .8rem .2rem 0;border-bottom:1px solid #8884}svg{width:100%;height:auto}figure{margin:1.5rem 0}figcaption span{opacity:.7}.steps{display:flex;gap:.5rem;overflow-x:auto}.steps img{width:16rem;display:block;border:1px solid #8884}.steps code{font-size:.75rem;display:block;max-width:16rem;overflow-wrap:anywhere}</style></head><body>
<h1>${escape(f.run)}</h1>
<p>Seed ${f.seed}, ${f.minutes} minutes, ${escape(f.machine.cpu)}, ${f.machine.cores} cores. Measured ${escape(f.at)}.</p>
<h2>Success</h2>
${table(
  ['tasks', 'success [95 %]', 'episodes', 'errors'],
  f.rows.map((r) => [rowName(r), rateText(r.successes, r.episodes), String(r.episodes), String(r.errors)]),
)}
<p>An episode that ended in an error is among the episodes and is no success. Intervals are of these episodes; another seed is another run.${
    removed
      ? ` Reinforcement learning removed ${percent(removed.mean)} [${Math.round(100 * removed.low)}, ${Math.round(100 * removed.high)}] of the failures that imitation left.`
      : ''
  }</p>
<h2>While it learned</h2>
${chart(x.curve)}
<p>Success of training rollouts, moving mean of 64.</p>
${table(
  ['evaluation', 'version', 'success [95 %]', 'errors'],
  f.points.map((p) => [p.label, `v${p.version}`, rateText(p.successes, p.episodes), String(p.errors)]),
)}
<h2>By family</h2>
${table(
  ['family', 'success [95 %]', 'screen blanked'],
  Object.entries(families).map(([name, n]) => {
    const b = blind[name];
    return [name, rateText(n.successes, n.episodes), b ? rateText(b.successes, b.episodes) : ''];
  }),
)}
<h2>Examples of success</h2>
${x.good.map(story).join('\n') || '<p>None.</p>'}
<h2>Examples of failure</h2>
${x.bad.map(story).join('\n') || '<p>None.</p>'}
</body></html>
`;
}
