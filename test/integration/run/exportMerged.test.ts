import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { RunStore } from '../../../runtime/data/store/runStore.js';
import { id, type RunId } from '../../../runtime/domain/index.js';
import type { ExportedModel } from '../../../runtime/run/exportModel.js';
import { weightsFolder } from '../../../runtime/trainer/engine/state.js';
import { writeState } from '../../../runtime/trainer/remote/savedState.js';
import { fakeModel, fakePython, type FakePython } from '../../helpers/engine/fakePython.js';
import { endAll, ensureBundle, startWith, type Ended } from '../../helpers/run/cli.js';

/**
 * `export-model --merged` through the bundle: its environment is made, its program is started, and the folder appears.
 * An interpreter that plays Python stands for PyTorch; that the sum is right is test/engine/test_merge.py's, and
 * test/peers/vllm's.
 */
let dir: string, run: string, runs: string, model: string, python: FakePython;
beforeAll(async () => {
  ensureBundle();
  dir = await mkdtemp(join(tmpdir(), 'dart-merged-'));
  runs = join(dir, 'runs');
  run = join(runs, 'taught');
  python = await fakePython(dir);
  model = await fakeModel(join(dir, 'models', 'tiny'));
  const create = {
    ...{ id: id<RunId>('taught'), createdAt: 1 },
    config: parseRunFile({ policy: { kind: 'vlm', vlm: { model } }, trainer: { remote: { engine: 'auto' } } }),
  };
  await mkdir(runs);
  const store = await RunStore.open(run, { index: 'local', create });
  for (const [version, adapter] of [
    [1, 'first'],
    [2, 'strange'],
    [3, 'newest'],
  ] as const) {
    const uri = `tinker://session-1:train:0/weights/v00000${version}-ab`,
      values = { version, updateSteps: 1, weights: uri, reference: null, model: 'm', session: 's', seq: 4 },
      saved = await writeState(join(run, 'checkpoints'), { base: model, rank: 4 }, values),
      folder = weightsFolder(join(run, 'engine'), uri)!;
    await store.append({ type: 'checkpoint', version, dir: saved.dir });
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'engine.json'), '{}');
    await writeFile(join(folder, 'adapter_config.json'), '{"peft_type":"LORA","r":4}');
    await writeFile(join(folder, 'adapter_model.safetensors'), adapter);
  }
  await store.close();
});
afterEach(endAll);
afterAll(() => rm(dir, { recursive: true, force: true }));

const merged = (to: string, ...more: string[]): Promise<Ended> =>
  startWith(python.env, 'export-model', 'taught', to, '--merged', '--runs', runs, '--json', ...more).ended;

describe('export-model --merged', () => {
  it('makes the environment and writes a whole model of the version that is asked for', async () => {
    const to = join(dir, 'out'),
      newest = await merged(to);
    expect(newest, newest.stderr).toMatchObject({ code: 0 });
    const made: ExportedModel = JSON.parse(newest.stdout) as ExportedModel,
      files = ['config.json', 'model.safetensors'];
    expect(made).toEqual({ dir: to, version: 3, kind: 'model', base: model, files });
    expect((await readdir(to)).sort()).toEqual(files);
    expect(await readFile(join(to, 'model.safetensors'), 'utf8')).toBe(`${model} and newest`);
    const first = join(dir, 'first');
    expect(await merged(first, '--checkpoint', '1')).toMatchObject({ code: 0 });
    expect(await readFile(join(first, 'model.safetensors'), 'utf8')).toBe(`${model} and first`);
  });

  it('says why a model cannot be made, and leaves nothing behind', async () => {
    const before = (await readdir(dir)).sort(),
      { code, stderr } = await merged(join(dir, 'other'), '--checkpoint', '2');
    expect(code).not.toBe(0);
    expect(stderr).toContain('The adapter is of another model');
    expect((await readdir(dir)).sort()).toEqual(before);
  });
});
