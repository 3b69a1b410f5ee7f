import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  damageOf,
  MANIFEST_VALUES,
  policyOfCheckpoint,
  readCheckpoint,
  writeCheckpoint,
} from '../../../runtime/trainer/checkpoint.js';
import { readState, weightsIn, writeState, type SavedState } from '../../../runtime/trainer/remote/savedState.js';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'manifest-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const model = { base: 'm', rank: 8 },
  head = { policy: 'm', layout: 'adapter of rank 8' },
  state: SavedState = {
    version: 3,
    updateSteps: 2,
    weights: 'tinker://m/weights/3',
    reference: null,
    model: 'm',
    session: 's',
    seq: 7,
  };
const invalid = { kind: 'trainer.invalid', message: expect.stringContaining('its manifest cannot be read') as string };

describe("a checkpoint's manifest", () => {
  it.each([
    ['nested too deep', `${'['.repeat(50)}${']'.repeat(50)}`],
    ['of too many values', `[${'0,'.repeat(MANIFEST_VALUES)}0]`],
  ])('that is %s is read by nobody', async (_, more) => {
    await mkdir(join(dir, 'v'));
    const at = join(dir, 'v'),
      text = JSON.stringify({ format: 1, ...head, values: state, files: {} });
    await writeFile(join(at, 'manifest.json'), text);
    expect([await policyOfCheckpoint(at), await weightsIn(at)]).toEqual(['m', [state.weights]]);
    await writeFile(join(at, 'manifest.json'), `${text.slice(0, -1)},"more":${more}}`);
    await expect(readCheckpoint(at, head)).rejects.toMatchObject(invalid);
    await expect(weightsIn(at)).rejects.toMatchObject(invalid);
    expect(await damageOf(at)).toMatchObject(invalid);
    expect(await policyOfCheckpoint(at)).toBeUndefined();
  });
  it('keeps weights of tokens beside it, however many: of NaN, of samples without any, and of none', async () => {
    const trained = (tokenWeights: (Float32Array | undefined)[] | undefined): SavedState['trained'] =>
        ({ batch: 'b', report: { loss: 1, tokenWeights } }) as never,
      read = async (of: SavedState['trained']): Promise<unknown> => {
        const { dir: at } = await writeState(dir, model, { ...state, trained: of });
        return (await readState(at, model)).trained;
      };
    for (const tokens of [
      [Float32Array.of(0.1, NaN, -Infinity), undefined, new Float32Array(0), new Float32Array(300_000).fill(0.7)],
      [undefined],
      [],
      undefined,
    ])
      expect(await read(trained(tokens))).toEqual({
        batch: 'b',
        report: { loss: 1, ...(tokens && { tokenWeights: tokens }) },
      });
    const { dir: at } = await writeState(dir, model, { ...state, trained: trained([new Float32Array(1 << 20)]) });
    expect((await readFile(join(at, 'manifest.json'))).length).toBeLessThan(2000);
  });
  it('with weights of tokens in it, as version 0.1 wrote them, is read', async () => {
    const values = { ...state, trained: { batch: 'b', report: { loss: 1, tokenWeights: [[0.5, null], null] } } };
    await writeCheckpoint(join(dir, 'v'), { ...head, values }, {});
    expect((await readState(join(dir, 'v'), model)).trained).toEqual({
      batch: 'b',
      report: { loss: 1, tokenWeights: [Float32Array.of(0.5, NaN), undefined] },
    });
  });
  it('whose counts are not those of its weights of tokens has none', async () => {
    const values = { ...state, trained: { batch: 'b', report: { loss: 1 }, tokens: [2, null] } };
    await writeCheckpoint(join(dir, 'v'), { ...head, values }, { 'tokens.f32': new Uint8Array(12) });
    expect((await readState(join(dir, 'v'), model)).trained).toEqual({ batch: 'b', report: { loss: 1 } });
  });
});
