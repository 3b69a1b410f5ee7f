import { expect, it } from 'vitest';
import { fuzz } from '../../fuzz/fuzz.js';
import { rpcFrames } from '../../fuzz/rpc.js';
import { inProcess } from '../../fuzz/targets.js';

/** Of each target at most, as many as two cores make in that time: a faster machine tries no others. */
const CASES = 1100;
/** Longer: DART_STUDIO_FUZZ_SECONDS, another way: DART_STUDIO_FUZZ_SEED, or `npm run fuzz`. */
const seconds = Number(process.env['DART_STUDIO_FUZZ_SECONDS'] ?? 40),
  seed = Number(process.env['DART_STUDIO_FUZZ_SEED'] ?? 1);

it(
  'whatever a stranger sends or leaves to be read ends in an error that was foreseen, holds nothing up, and costs little',
  async () => {
    const report = await fuzz({
      seed,
      ms: seconds * 1000,
      most: seconds > 60 ? undefined : CASES,
      targets: [...inProcess(), rpcFrames()],
    });
    console.log(JSON.stringify(report.targets, null, 1));
    expect(report.failures).toEqual([]);
    for (const [name, t] of Object.entries(report.targets)) {
      expect(t.cases, name).toBeGreaterThan(20);
      // Neither is everything refused nor everything taken: the changes reach what they are meant for.
      expect(Object.keys(t.ended).length, name).toBeGreaterThan(name === 'rpc frames' || name === 'imports' ? 0 : 1);
    }
  },
  (seconds + 120) * 1000,
);
