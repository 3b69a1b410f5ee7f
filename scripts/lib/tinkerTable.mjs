// What `npm run test:peers:tinker` expects of each server, and the table of test/peers/tinker/README.md.

/** A run on text alone does without these checks. */
const IMAGES = ['images', 'chunk-order'];
const BEGIN = '<!-- results: npm run test:peers:tinker writes what stands between -->',
  END = '<!-- end of results -->';

const failedChecks = (s) => (s.probe?.checks ?? []).filter((c) => c.needed && !c.ok);
const withoutImages = (s) => failedChecks(s).filter((c) => !IMAGES.includes(c.name));
const refusedFor = (s, name) => (s.probe?.checks ?? []).some((c) => c.name === name && !c.ok);

/** What is expected of a server that was measured, and does not hold. */
const EXPECTED = {
  tuft: (s) => [
    [withoutImages(s).length === 0, 'the probe refuses it for a run on text'],
    ...learning(s),
    [s.gradient?.relativeError <= 1e-4, 'its gradient is not that of the objective'],
  ],
  skyrl: (s) => [
    [!s.probe.ok, 'the probe lets a run with screenshots train on it'],
    ...['cross_entropy', 'images', 'clip'].map((c) => [refusedFor(s, c), `the probe does not see what is wrong: ${c}`]),
    ...(s.probe.carriage
      ? [...learning(s), [s.gradient?.relativeError <= 1e-2, 'the second carrier is not exact within 1 %']]
      : []),
  ],
  hatchery: (s) => [
    [!s.probe.ok, 'the probe lets a run with screenshots train on it'],
    ...['cross_entropy', 'importance_sampling', 'images'].map((c) => [
      refusedFor(s, c),
      `the probe does not see what is wrong: ${c}`,
    ]),
  ],
};
const learning = ({ trained: t }) => [
  [t?.lesson.lossAfter < t?.lesson.lossBefore / 2, 'the lesson does not halve the loss'],
  [t?.reinforcement.optimizerSteps === t?.reinforcement.updates, 'optimizer steps are not counted, or not made'],
  [t?.reinforcement.shareAfter > 0.9, 'the word is not learnt'],
  [t?.restored < 1e-5, 'a checkpoint does not come back as it was'],
];

/** Everything that is not as expected, and the needed checks that TuFT's exact server failed for a run on text. */
export function failures(servers) {
  const failed = Object.entries(servers).flatMap(([name, s]) =>
    s.error
      ? [`${name}: ${s.error.slice(0, 500)}`]
      : EXPECTED[name](s).flatMap(([holds, what]) => (holds ? [] : [`${name}: ${what}`])),
  );
  return { probe_false_refusals: servers.tuft?.probe ? withoutImages(servers.tuft).length : null, failed };
}

const figure = (x) => (typeof x === 'number' ? String(Number(x.toPrecision(3))) : '—');
const cell = (text) => text.replaceAll('|', '\\|').replace(/\s+/g, ' ').slice(0, 400);
const versionsOf = (s) =>
  Object.entries(s.versions ?? {})
    .map(([k, v]) => `${k} ${v}`)
    .join(', ');
const verdictOf = (s) => {
  if (s.error) return `not measured: ${cell(s.error)}`;
  const failed = failedChecks(s).map((c) => c.name);
  return failed.length === 0 ? 'can train' : `refused: ${failed.join(', ')}`;
};
const carriedBy = ({ probe }) =>
  probe?.carriage
    ? `${probe.carriage.carrier} (datum: ${probe.carriage.reduction.withinDatum}, datums: ${probe.carriage.reduction.overDatums})`
    : 'nothing exact';
function learned({ trained: t }) {
  if (!t) return 'no';
  const { lesson: l, reinforcement: r } = t;
  return `lesson of ${l.steps} steps: loss ${figure(l.lossBefore)} → ${figure(l.lossAfter)}; ${r.updates} updates (${r.optimizerSteps} optimizer steps, ${figure(r.msAnUpdate / 1000)} s each): the right word of four ${figure(r.shareBefore)} → ${figure(r.shareAfter)}; restored within ${typeof t.restored === 'number' ? figure(t.restored) : cell(t.restored.error)}`;
}
const gradientWords = ({ gradient: g }) => (!g ? '—' : g.error ? cell(g.error) : figure(g.relativeError));

/** The page with its table as measured. */
export function table(page, servers) {
  const all = Object.values(servers),
    names = [...new Set(all.flatMap((s) => (s.probe?.checks ?? []).map((c) => c.name)))];
  const overview = [
    '| server | versions | verdict for a run with screenshots | gradient carried by | trained | relative gradient error |',
    '| --- | --- | --- | --- | --- | --- |',
    ...all.map((s) =>
      ['', s.server, versionsOf(s), verdictOf(s), carriedBy(s), learned(s), gradientWords(s), ''].join(' | ').trim(),
    ),
  ];
  const checks = [
    `| check | ${all.map((s) => s.server).join(' | ')} |`,
    `| --- |${' --- |'.repeat(all.length)}`,
    ...names.map((name) => {
      const found = all.map((s) => s.probe?.checks.find((c) => c.name === name));
      return `| ${name} | ${found.map((c) => (c ? `${c.ok ? '✓' : c.needed ? '✗' : '!'} ${cell(c.detail)}` : '—')).join(' | ')} |`;
    }),
  ];
  const [head] = page.split(BEGIN),
    tail = page.split(END)[1] ?? '\n';
  const text = [
    BEGIN,
    '',
    ...overview,
    '',
    'The probe in its own words (✗ a run with screenshots needs it, ! it does not):',
    '',
    ...checks,
    '',
    END,
  ];
  return head + text.join('\n') + tail;
}
