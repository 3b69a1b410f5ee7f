import { mkdir, mkdtemp, readFile, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseRunFile, type RunFile } from '../../../runtime/config/index.js';
import { RunStore } from '../../../runtime/data/store/runStore.js';
import { id, type RunId } from '../../../runtime/domain/index.js';
import { exportModel, type ExportModelRequest } from '../../../runtime/run/exportModel.js';
import { weightsFolder } from '../../../runtime/trainer/engine/state.js';
import { writeState } from '../../../runtime/trainer/remote/savedState.js';

const URI = 'tinker://session-1:train:0/weights/v000003-ab';
const VLM: RunFile = { policy: { kind: 'vlm', vlm: { model: 'org/m' } }, trainer: { remote: { engine: 'auto' } } };

let dir: string, run: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'export-model-'));
  run = join(dir, 'run');
});
afterEach(() => rm(dir, { recursive: true, force: true }));

async function runWith(file: RunFile, checkpoint?: string): Promise<void> {
  const create = { id: id<RunId>('r'), createdAt: 1, config: parseRunFile(file) },
    store = await RunStore.open(run, { index: 'local', create });
  if (checkpoint !== undefined) await store.append({ type: 'checkpoint', version: 3, dir: checkpoint });
  await store.close();
}
const vlmCheckpoint = async (): Promise<string> => {
  const values = { version: 3, updateSteps: 1, weights: URI, reference: null, model: 'm', session: 's', seq: 4 };
  return (await writeState(join(run, 'checkpoints'), { base: 'org/m', rank: 4 }, values)).dir;
};
async function engineHas(state: string): Promise<void> {
  const folder = weightsFolder(state, URI)!;
  await mkdir(folder, { recursive: true });
  for (const [name, text] of [
    ['engine.json', '{}'],
    ['adapter_config.json', '{"peft_type":"LORA","r":4}'],
    ['adapter_model.safetensors', 'weights'],
    ['optimizer.safetensors', 'not for others'],
  ] as const)
    await writeFile(join(folder, name), text);
}
const ask = (o: Partial<ExportModelRequest> = {}): ReturnType<typeof exportModel> =>
  exportModel({
    run,
    to: join(dir, 'out'),
    merged: false,
    states: [join(dir, 'nowhere')],
    entry: 'local' as unknown as ExportModelRequest['entry'],
    signal: new AbortController().signal,
    onLine: () => undefined,
    ...o,
  });

describe('export-model', () => {
  it('writes the adapter of the newest checkpoint, and nothing of the optimizer', async () => {
    await runWith(VLM, await vlmCheckpoint());
    await engineHas(join(run, 'engine'));
    const made = await ask();
    expect(made).toMatchObject({ version: 3, kind: 'adapter', base: 'org/m' });
    expect(await readdir(join(dir, 'out'))).toEqual(['adapter_config.json', 'adapter_model.safetensors']);
    expect(await readFile(join(dir, 'out', 'adapter_model.safetensors'), 'utf8')).toBe('weights');
    await expect(ask()).rejects.toMatchObject({ error: { kind: 'store.io' } });
    expect(await readdir(dir)).toEqual(['out', 'run']);
  });

  it('finds the weights of an engine that ran beside the run, and says where they are when it does not', async () => {
    await runWith(VLM, await vlmCheckpoint());
    await expect(ask()).rejects.toThrow(URI);
    const state = join(dir, 'state');
    await engineHas(state);
    expect(await ask({ states: [state] })).toMatchObject({ kind: 'adapter' });
  });

  it("writes an embedded policy's network, which has no adapter", async () => {
    const checkpoint = join(run, 'checkpoints', 'v000003');
    await runWith({ preset: 'quickstart' }, checkpoint);
    await mkdir(checkpoint, { recursive: true });
    for (const name of ['policy.onnx', 'manifest.json', 'weights.bin']) await writeFile(join(checkpoint, name), name);
    await expect(ask({ merged: true })).rejects.toThrow('no adapter');
    expect(await ask()).toMatchObject({ kind: 'onnx', files: ['manifest.json', 'policy.onnx'] });
  });

  it('takes nothing through a link in the run folder', async () => {
    await runWith(VLM, await vlmCheckpoint());
    await engineHas(join(run, 'engine'));
    const weights = weightsFolder(join(run, 'engine'), URI)!,
      away = join(dir, 'away'),
      refused = { kind: 'store.damaged' };
    for (const part of [join(weights, 'adapter_model.safetensors'), join(weights, 'adapter_config.json'), weights]) {
      await rename(part, away);
      await symlink(away, part);
      await expect(ask()).rejects.toMatchObject(refused);
      // Python would follow it.
      await expect(ask({ merged: true })).rejects.toMatchObject(refused);
      await rm(part);
      await rename(away, part);
    }
    expect(await ask()).toMatchObject({ kind: 'adapter' });
  });

  it('has nothing to write where nothing was trained', async () => {
    await runWith({ policy: { kind: 'openai', openai: { baseUrls: ['http://127.0.0.1:1/v1'], model: 'm' } } });
    await expect(ask()).rejects.toThrow('did not train');
    await rm(run, { recursive: true });
    await runWith(VLM);
    await expect(ask({ version: 9 })).rejects.toThrow('no checkpoint of version 9');
  });
});
