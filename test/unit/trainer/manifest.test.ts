import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { damageOf, MANIFEST_VALUES, policyOfCheckpoint, readCheckpoint } from '../../../runtime/trainer/checkpoint.js';
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
  it('leaves out weights of tokens with which it could not be read again', async () => {
    const tokens = (n: number): SavedState['trained'] =>
      ({ batch: 'b', report: { loss: 1, tokenWeights: [new Float32Array(n), undefined] } }) as never;
    const few = await writeState(dir, model, { ...state, trained: tokens(3) });
    expect((await readState(few.dir, model)).trained?.report.tokenWeights?.[0]).toEqual(new Float32Array(3));
    const many = await writeState(dir, model, { ...state, version: 4, trained: tokens(MANIFEST_VALUES) });
    expect((await readState(many.dir, model)).trained).toEqual({ batch: 'b', report: { loss: 1 } });
  });
});
