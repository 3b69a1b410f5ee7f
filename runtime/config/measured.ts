// Made by `npm run generate` from test/engine/results/gpu.json: do not edit.

/**
 * The engine on one GPU, by the shape of the model: an update of so many steps and tokens, which scores its steps and
 * then trains on them, its seconds and the GiB at its peak; and the tokens of answers a second, `rows` answers of
 * `answer` tokens at once: `decoded` without the time of their prompts, `sampled` with it.
 */
export const MEASURED = {
  source: 'test/engine/results/gpu.json',
  commit: 'b7944ad7',
  device: 'NVIDIA H200',
  rank: 16,
  rows: 8,
  answer: 100,
  shapes: {
    'Qwen2.5-VL-7B': {
      parameters: 8_292_166_656,
      steps: 8,
      tokens: 60_648,
      seconds: 15.68,
      gib: 25.5,
      decoded: 82.6,
      sampled: 57.1,
    },
    'Qwen3-VL-8B': {
      parameters: 8_767_123_696,
      steps: 8,
      tokens: 48_008,
      seconds: 13.14,
      gib: 25,
      decoded: 64.1,
      sampled: 51.3,
    },
  },
} as const;
