// What pages say of the ablation of curation: from the JSON that `npm run bench:curation` writes, and until that has all
// of its runs, from version 0.1's report.

const points = (x) => `${x >= 0 ? '+' : ''}${x.toFixed(1)}`;
const PLAIN = 'reinforcement learning without curation',
  POOL = 'experience pool alone, injected and imitated',
  DESIGN = 'all runs of the design';
const named = (rows) => rows.map((r) => `${r.label}${r.ours ? ' (ours)' : ''}`).join(', ');

/**
 * `now`: the JSON, or undefined before the first run; `before`: version 0.1's page; `columns`: of effects, as in that page
 * of the benchmark. Effects are quoted only of a whole
 * plan: of a part of it two mechanisms acting together may pass for a third.
 */
export function curationTables({ now, before, columns }, table) {
  const of = (section) => (now?.rows ?? []).filter((r) => r.section === section),
    [plan] = of('plan'),
    effects = of('effect');
  if (!plan?.complete || effects.length === 0) return notYet(plan, before, table);
  const mechanisms = effects.filter((r) => r.mechanism !== 'nothing');
  return [
    `${plan.made} runs of ${plan.seeds.split(' ').length} seeds (${of('run').length} with starting policies and the rows beside the design), commit ${now.commit}.`,
    table(
      columns,
      effects.map((r) => [
        `${r.label}${r.ours ? ' (ours)' : ''}${r.among === '' ? '' : `, ${r.among}`}`,
        `${points(r.points)} [${points(r.low)}, ${points(r.high)}]`,
        r.verdict,
        Number.isFinite(r.moved) ? `${points(r.moved)} ± ${r['moved±'].toFixed(1)}` : '',
        Number.isFinite(r.heldout) ? `${points(r.heldout)} ± ${r['heldout±'].toFixed(1)}` : '',
        ...[r.default, r.quickstart].map((x) => (r.mechanism === 'nothing' ? '' : x)),
      ]),
    ),
    table(
      ['beside it', 'seeds', 'unseen words', 'other arrangements', 'by the model'],
      of('beside').map((r) => [r.label, r.seeds, r.words, r.heldout, r.model]),
    ),
    earned(mechanisms),
  ].join('\n\n');
}

const helps = (r) => r.resolved && r.low > 0,
  isOn = (r) => r.default === 'on' || r.quickstart === 'on',
  VERDICTS = [
    ['Helps here', helps],
    ['Hurts here', (r) => r.resolved && r.high < 0],
    ['An effect of 8 points is excluded', (r) => r.excluded && !r.resolved],
    ['Cannot be told', (r) => !r.excluded && !r.resolved],
  ];

/** What is on without having helped, and what helped and is off. */
function earned(mechanisms) {
  const said = [
    ...VERDICTS,
    ['**On by default or in the quick start without having earned its place here**', (r) => isOn(r) && !helps(r)],
    ['Off by default though it helps here', (r) => !isOn(r) && helps(r)],
  ];
  return said
    .map(([what, is]) => [what, mechanisms.filter(is)])
    .filter(([, rows]) => rows.length > 0)
    .map(([what, rows]) => `- ${what}: ${named(rows)}.`)
    .join('\n');
}

/** The same in the sentences of the front page. */
export function earnedSaid(now) {
  const of = (section) => (now?.rows ?? []).filter((r) => r.section === section),
    [plan] = of('plan');
  if (!plan?.complete) return '- **Mechanisms**: no ablation is recorded yet.';
  const mechanisms = of('effect').filter((r) => r.mechanism !== 'nothing'),
    // Figures only where they say something; the table has all.
    told = (r) =>
      r.excluded && !r.resolved ? r.label : `${r.label} (${points(r.points)} [${points(r.low)}, ${points(r.high)}])`,
    verdicts = (rows) =>
      VERDICTS.map(([what, is]) => [what.replace(' here', '').toLowerCase(), rows.filter(is)])
        .filter(([, some]) => some.length > 0)
        .map(([what, some]) => `${what}: ${some.map(told).join(', ')}`)
        .join('; '),
    groups = [
      ["DART's, on by default", (r) => !r.ours && isOn(r)],
      ["DART's, off by default", (r) => !r.ours && !isOn(r)],
      ['Ours, on by default', (r) => r.ours && isOn(r)],
      ['Ours, off by default', (r) => r.ours && !isOn(r)],
    ],
    beside = Object.fromEntries(of('beside').map((r) => [r.label, r.words]));
  return [
    `- **Which mechanisms earned their place**: by an ablation of ${plan.made} runs over ${plan.seeds.split(' ').length} seeds ([table](test/bench/README.md#curation); points of success on unseen words of six harder templates that are trained, 95 %; of twenty such verdicts about one is wrong by chance). ${groups
      .map(([who, is]) => [who, mechanisms.filter(is)])
      .filter(([, rows]) => rows.length > 0)
      .map(([who, rows]) => `*${who}*: ${verdicts(rows)}.`)
      .join(' ')}`,
    ...(beside[PLAIN]
      ? [
          `There, five minutes of reinforcement learning without these mechanisms (group filter and staleness bound stay on) come to ${beside[PLAIN]}, with pool and imitation alone to ${beside[POOL]}, and those ${plan.made} runs to ${beside[DESIGN]} in the mean.`,
        ]
      : []),
  ].join(' ');
}

function notYet(plan, before, table) {
  const made = plan?.made ?? 0,
    effects = [...before.matchAll(/^- \*\*(.+?)\*\*( \(ours\))?(?:: | )(.*?)([+-]\d+\.\d ± \d+\.\d) points/gm)].map(
      ([, name, ours, verdict, value]) => [`${name}${ours ?? ''}`, value, verdict.replace(/[:\s]+$/, '')],
    );
  return [
    made === 0
      ? '**Not recorded yet.** What there is, is of version 0.1: its code, eight short templates of which four need no eyes, 96 episodes with words of training ([all of it](results/curation/version-0.1.md)).'
      : `**${made} of ${plan.design} runs of the design are recorded** ([so far](results/curation/curation.md)), and no effect is quoted until they are whole. What there is, is of version 0.1: its code, eight short templates of which four need no eyes, 96 episodes with words of training ([all of it](results/curation/version-0.1.md)).`,
    table(['version 0.1: mechanism', 'success, points', 'by the additive model'], effects),
  ].join('\n\n');
}
