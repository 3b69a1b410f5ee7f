import { mkdtemp, mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseRunFile, type RunConfig } from '../../../runtime/config/index.js';
import { locateModel, startOwnEngine } from '../../../runtime/run/backends/ownEngine.js';
import { StartedParts } from '../../../runtime/run/backends/startedParts.js';
import type { BackendRequest } from '../../../runtime/run/backends/types.js';
import { checkOwnEngine } from '../../../runtime/service/runChecks/ownEngine.js';
import { adoptWeights, hasWeights, weightsFolder } from '../../../runtime/trainer/engine/state.js';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'own-engine-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const configOf = (model: string): RunConfig =>
  parseRunFile({ policy: { kind: 'vlm', vlm: { model } }, trainer: { remote: { engine: 'auto' } } });
async function model(...path: string[]): Promise<string> {
  const folder = join(dir, ...path);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'config.json'), '{}');
  return folder;
}

describe('the model of an engine that a run starts', () => {
  it('is a folder beside the run file, or else the name it is', async () => {
    const folder = await model('beside', 'm');
    const located = (name: string): string =>
      locateModel(configOf(name), [join(dir, 'elsewhere'), join(dir, 'beside')]).policy.vlm!.model;
    expect(located('m')).toBe(folder);
    expect(located(folder)).toBe(folder);
    expect(located('Qwen/Qwen3-VL-8B-Instruct')).toBe('Qwen/Qwen3-VL-8B-Instruct');
  });

  it.each(['--allow-remote-code', '../up', '/no/such/folder', 'a/b/c', ''])('%j starts nothing', async (name) => {
    const request = {
      config: configOf(name),
      dir,
      signal: new AbortController().signal,
    } as unknown as BackendRequest;
    const started = startOwnEngine(request, new StartedParts(request.signal));
    await expect(started).rejects.toMatchObject({ error: { kind: 'config.invalid' } });
  });

  it('is looked at by doctor, which starts and fetches nothing', async () => {
    const rows = await checkOwnEngine('m', join(dir, 'beside'));
    expect(rows.find((r) => r.name.endsWith('model'))).toMatchObject({ ok: false, level: 'optional' });
    const folder = await model('beside', 'm');
    const found = await checkOwnEngine('m', join(dir, 'beside'));
    expect(found.find((r) => r.name.endsWith('model'))).toMatchObject({ ok: true, detail: folder });
  });
});

describe('the folder of an engine', () => {
  const uri = 'tinker://session-1:train:0/weights/v000001-ab';

  it('is named as the engine names it, and nothing leads out of it', () => {
    expect(weightsFolder('/s', uri)).toBe('/s/models/session-1%3Atrain%3A0/weights/v000001-ab');
    expect(weightsFolder('/s', "tinker://a'b(c)!*/weights/x")).toBe('/s/models/a%27b%28c%29%21%2A/weights/x');
    for (const bad of ['tinker://m/weights/..', 'tinker://m/weights/a/b', 'tinker://m/other/a', '/etc/passwd'])
      expect(weightsFolder('/s', bad)).toBeUndefined();
  });

  it('takes weights of another one without copying them, and says which are gone', async () => {
    const [from, to] = [join(dir, 'from'), join(dir, 'to')],
      source = weightsFolder(from, uri)!;
    await mkdir(source, { recursive: true });
    await writeFile(join(source, 'engine.json'), '{}');
    await writeFile(join(source, 'weights.safetensors'), 'w');
    await writeFile(join(source, '..', '..', 'model.json'), '{"lora":1}');
    await adoptWeights(from, to, uri);
    await adoptWeights(from, to, uri);
    expect(hasWeights(to, uri)).toBe(true);
    const file = await stat(join(weightsFolder(to, uri)!, 'weights.safetensors'));
    expect(file.ino).toBe((await stat(join(source, 'weights.safetensors'))).ino);
    await expect(adoptWeights(from, to, 'tinker://x/weights/y')).rejects.toThrow('does not hold the weights');
  });
});
