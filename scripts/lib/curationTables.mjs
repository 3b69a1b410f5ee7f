// What pages say of the ablation of curation: from the JSON that `npm run bench:curation` writes, and until that has all
// of its runs, from version 0.1's report.

const points = (x) => `${x >= 0 ? '+' : ''}${x.toFixed(1)}`;
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

/** What is on without having helped, and what helped and is off. */
function earned(mechanisms) {
  const helps = (r) => r.resolved && r.low > 0,
    hurts = (r) => r.resolved && r.high < 0,
    on = (r) => r.default === 'on' || r.quickstart === 'on',
    unearned = mechanisms.filter((r) => on(r) && !helps(r)),
    missed = mechanisms.filter((r) => !on(r) && helps(r));
  const said = [
    ['Helps here', mechanisms.filter(helps)],
    ['Hurts here', mechanisms.filter(hurts)],
    ['An effect of 8 points is excluded', mechanisms.filter((r) => r.excluded && !r.resolved)],
    ['Cannot be told', mechanisms.filter((r) => !r.excluded && !r.resolved)],
    ['**On by default or in the quick start without having earned its place here**', unearned],
    ['Off by default though it helps here', missed],
  ];
  return said
    .filter(([, rows]) => rows.length > 0)
    .map(([what, rows]) => `- ${what}: ${named(rows)}.`)
    .join('\n');
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
