import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readTensors, writeTensors } from '../../../runtime/interchange/torchFile.js';
import { pythonWithTorch } from '../../bench/trainer/python.js';
import { inFolder } from '../../helpers/interchange/make.js';

/** As DART's trainer loads an answer's tokens, and its rollouter saves them. */
const PROGRAM = `
import sys, torch
d = torch.load(sys.argv[1])
assert d["logp"].dtype == torch.float32 and d["token_ids"].dtype == torch.int64
print(d["logp"].tolist(), d["token_ids"].long().tolist())
torch.save({"logp": d["logp"] * 2, "token_ids": d["token_ids"] + 1}, sys.argv[2])
`;
const python = pythonWithTorch();
if (!python) console.log('skipped: PyTorch is not installed (apt-get install python3-torch)');

it.skipIf(!python).each([
  ['answers', [-0.25, -1.5, 0], [7, 151_645, 3]],
  ['no tokens', [], []],
] as const)('torch loads what is written and saves what is read: %s', (_, logp, ids) =>
  inFolder(async (dir) => {
    const [ours, theirs] = [join(dir, 'ours.pt'), join(dir, 'theirs.pt')];
    await writeFile(ours, writeTensors({ logp: Float32Array.from(logp), token_ids: Int32Array.from(ids) }));
    const said = execFileSync(python!, ['-c', PROGRAM, ours, theirs], { encoding: 'utf8' });
    expect(said.trim()).toBe(
      `[${logp.map((x) => (Number.isInteger(x) ? x.toFixed(1) : String(x))).join(', ')}] [${ids.join(', ')}]`,
    );
    expect(Object.fromEntries(readTensors(await readFile(theirs)))).toEqual({
      logp: Float32Array.from(logp, (x) => 2 * x),
      token_ids: Int32Array.from(ids, (x) => x + 1),
    });
  }),
);
