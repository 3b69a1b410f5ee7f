// What the page of run files says of the engine on a GPU, from the recorded results of `node scripts/engine.mjs gpu`.

/**
 * Calculated before anything was measured, for the same step (bf16, an adapter of rank 16 on the language model, vision
 * frozen): seconds of an update are an eighth of those for 64 steps. Decoding is of transformers at batch 8, of no shape
 * by itself. What is missing was not calculated.
 */
const PAPER = {
  'Qwen2.5-VL-7B': { update: '10', decoded: '160 to 200', training: '21.7' },
  'Qwen3-VL-8B': { decoded: '160 to 200', training: '22.0' },
};
const onPaper = (r, what) => PAPER[r.shape]?.[what] ?? '—';

/** One row for each shape and run, newest run first. `probe`: the conformance probe on the engine, with such a model. */
export function gpuTable({ runs, probe }, table) {
  const head = [
    'shape',
    'commit',
    's/update of 8 steps',
    'on paper',
    'tokens/s trained',
    's/8 prompts',
    'tokens/s decoded',
    'on paper',
    'GiB training',
    'on paper',
    'GiB sampling',
  ];
  const rows = runs.flatMap(({ commit, rows }) =>
    rows.map((r) => [
      r.shape,
      commit,
      seconds(r, r.steps),
      onPaper(r, 'update'),
      r.tokens_per_s_trained.toLocaleString('en'),
      r.s_prompts,
      r.tokens_per_s_decoded,
      onPaper(r, 'decoded'),
      r.peak_gib_trained,
      onPaper(r, 'training'),
      r.peak_gib_sampled,
    ]),
  );
  const [{ device, versions, step, rows: newest }] = runs,
    each = newest.map((r) => `${(r.s_an_update / r.steps).toFixed(2)} s in the shape of ${r.shape}`).join(', '),
    about = runs.map((r) => `${r.commit}: ${r.about}.`).join(' ');
  return [
    `${device}, torch ${versions.torch}, transformers ${versions.transformers}, peft ${versions.peft}: random weights in bfloat16, an adapter of rank ${step.lora_rank} on the language model, ${step.pictures} pictures of 1280x720, ${step.text_tokens.toLocaleString('en')} tokens of text and an answer of ${step.answer_tokens} a step; an update scores its steps, then trains on them. "On paper" is what was calculated beforehand for the shape (—: it was not). ${about}`,
    table(head, rows),
    `A step of an update takes ${each}.`,
    probeLine(probe),
  ].join('\n\n');
}
function seconds(r, steps) {
  if (steps !== 8) throw new Error(`${r.shape} was measured with ${steps} steps an update, the column says 8`);
  return r.s_an_update;
}
function probeLine({ shape, commit, ok, about, checks, probe_s }) {
  const failed = checks.filter((c) => !c.ok).map((c) => c.name);
  return ok
    ? `\`engine probe\` on the engine with the shape of ${shape} (${commit}): passes, in ${probe_s} s.`
    : `\`engine probe\` on the engine with the shape of ${shape} (${commit}): **refused**, wrongly (${failed.join(', ')}): ${about}.`;
}

/** What the newest run measured, as source of the runtime (runtime/config/measured.ts). */
export function measuredSource({ runs: [{ commit, device, step, rows }] }) {
  const number = (x) => (Number.isInteger(x) ? String(x).replace(/(\d)(?=(\d{3})+$)/g, '$1_') : String(x));
  const shape = (r) =>
    [
      `    '${r.shape}': {`,
      `      parameters: ${number(r.parameters)},`,
      `      steps: ${r.steps},`,
      `      tokens: ${number(r.tokens_an_update)},`,
      `      seconds: ${number(r.s_an_update)},`,
      `      gib: ${number(r.peak_gib_trained)},`,
      `      decoded: ${number(r.tokens_per_s_decoded)},`,
      `      sampled: ${number(r.tokens_per_s_sampled)},`,
      '    },',
    ].join('\n');
  return `// Made by \`npm run generate\` from test/engine/results/gpu.json: do not edit.

/**
 * The engine on one GPU, by the shape of the model: an update of so many steps and tokens, which scores its steps and
 * then trains on them, its seconds and the GiB at its peak; and the tokens of answers a second, \`rows\` answers of
 * \`answer\` tokens at once: \`decoded\` without the time of their prompts, \`sampled\` with it.
 */
export const MEASURED = {
  source: 'test/engine/results/gpu.json',
  commit: '${commit}',
  device: '${device}',
  rank: ${step.lora_rank},
  rows: ${rows[0].rows_sampled},
  answer: ${step.answer_tokens},
  shapes: {
${rows.map(shape).join('\n')}
  },
} as const;
`;
}
