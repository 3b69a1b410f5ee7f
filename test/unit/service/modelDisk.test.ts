import { mkdtemp, mkdir, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { parseRunFile, type RunConfig } from '../../../runtime/config/index.js';
import { checkModelDisk, parametersByName, savedBytes } from '../../../runtime/service/runChecks/modelDisk.js';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'model-disk-'));
  vi.stubEnv('HF_HOME', join(dir, 'hub'));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(dir, { recursive: true, force: true });
});
const config = (model: string, rank: number, more: object = {}): RunConfig =>
  parseRunFile({
    policy: { kind: 'vlm', vlm: { model } },
    trainer: { remote: { engine: 'auto', rank }, ...more },
  });
/** Qwen2.5-VL-7B's language model, as its configuration has it. */
const QWEN = {
  hidden_size: 3584,
  intermediate_size: 18_944,
  num_attention_heads: 28,
  num_key_value_heads: 4,
  num_hidden_layers: 28,
  vocab_size: 152_064,
};

describe('what a model takes on disk', () => {
  it('is told by its name, where that has a size', () => {
    expect(parametersByName('ByteDance-Seed/UI-TARS-1.5-7B')).toBe(7e9);
    expect(parametersByName('Qwen/Qwen3-VL-8B-Instruct')).toBe(8e9);
    expect(parametersByName('Qwen/Qwen2.5-VL-0.5b')).toBe(0.5e9);
    for (const name of ['tiny', 'gpt-4bit', 'model-v1.5', '7bits'])
      expect(parametersByName(name), name).toBeUndefined();
  });
  it('of all weights is 14 bytes a parameter in bfloat16 and 12 in float32, for each checkpoint that is kept', () => {
    const half = savedBytes(config('m', 0), 7e9, undefined)!;
    expect([half.checkpoint, half.exported, half.all]).toEqual([98e9, 28e9, 4 * 98e9 + 28e9]);
    const single = parseRunFile({
      policy: { kind: 'vlm', vlm: { model: 'm' } },
      trainer: { remote: { engine: 'auto', rank: 0, options: { dtype: 'float32' } }, klBeta: 0.1 },
    });
    // And one more that the KL term compares with.
    expect(savedBytes(single, 1e9, undefined)).toEqual({ checkpoint: 12e9, exported: 8e9, all: 5 * 12e9 + 8e9 });
  });
  it('of an adapter is that of its layers, known from a configuration alone', () => {
    expect(savedBytes(config('m', 16), 7e9, undefined)).toBeUndefined();
    const layer = 2 * (3584 + 3584) + 2 * (3584 + 512) + 3 * (3584 + 18_944),
      parameters = 16 * (28 * layer + 3584 + 152_064);
    expect(savedBytes(config('m', 16), 7e9, { text_config: QWEN })!.checkpoint).toBe(parameters * 12);
    expect(savedBytes(config('m', 16), 7e9, QWEN)!.exported).toBe(parameters * 8);
  });
});

describe('doctor', () => {
  const rows = async (c: RunConfig): Promise<Record<string, string>> =>
    Object.fromEntries((await checkModelDisk(c, dir)).map((r) => [`${r.name}${r.ok ? '' : ' !'}`, r.detail]));

  it('says what a model that is to be fetched takes at least, and once it is there no more', async () => {
    const name = 'Somebody/Huge-9000000B';
    expect(await rows(config(name, 16))).toEqual({
      'disk for the model !': expect.stringContaining('its name says 9000000 B parameters') as string,
    });
    await mkdir(join(dir, 'hub', 'hub', 'models--Somebody--Huge-9000000B'), { recursive: true });
    expect(await rows(config(name, 16))).toEqual({});
  });
  it('says what the weights of a model in a folder will take', async () => {
    const folder = join(dir, 'model');
    await mkdir(folder);
    await writeFile(join(folder, 'config.json'), JSON.stringify({ dtype: 'bfloat16', text_config: QWEN }));
    await writeFile(join(folder, 'model.safetensors'), '');
    await truncate(join(folder, 'model.safetensors'), 2e9);
    const said = await rows(config('model', 0));
    expect(Object.values(said)[0]).toMatch(
      /free; 3 checkpoints and the one being saved take 14 GB each, weights for sampling 4\.0 GB/,
    );
    expect(Object.keys(await rows(config('model', 16)))).toEqual(['disk for weights']);
  });
  it('leaves out what nothing tells, and what lies with an engine elsewhere', async () => {
    expect(await rows(config('Somebody/tiny', 0))).toEqual({});
    const elsewhere = parseRunFile({
      policy: { kind: 'vlm', vlm: { model: 'A/B-7B', endpoints: ['http://127.0.0.1:1/v1'] } },
      trainer: { remote: { url: 'http://127.0.0.1:1', rank: 0 } },
    });
    expect(await rows(elsewhere)).toEqual({});
  });
});
