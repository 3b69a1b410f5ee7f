// Made by `npm run generate` from test/engine/results/gpu.json: do not edit.

/**
 * The engine on one GPU, by the shape of the model: an update of so many steps and tokens, which scores its steps and
 * then trains on them, its seconds and the GiB at its peak; and the tokens decoded a second, `rows` answers at once.
 */
export const MEASURED = {
  source: 'test/engine/results/gpu.json',
  commit: 'b7944ad7',
  device: 'NVIDIA H200',
  rank: 16,
  rows: 8,
  shapes: {
    'Qwen2.5-VL-7B': { steps: 8, tokens: 60_648, seconds: 15.68, gib: 25.5, decoded: 82.6 },
    'Qwen3-VL-8B': { steps: 8, tokens: 48_008, seconds: 13.14, gib: 25, decoded: 64.1 },
  },
} as const;
