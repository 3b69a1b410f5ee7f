import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  choiceOf,
  HEADS,
  HEADS_OF_TYPE,
  headOffsets,
  headSizes,
  id,
  random,
  type EmbeddedPolicySpec,
  type RolloutId,
  type EmbeddedSample,
} from '../../../runtime/domain/index.js';
import { LOSS_PARAMS, TOKENS } from '../../../runtime/trainer/native/model/lossGraph.js';
import { decayMask, placedParams } from '../../../runtime/trainer/native/model/params.js';
import type { PolicyModel } from '../../../runtime/trainer/native/model/policyGraph.js';
import type { TrainerOptions } from '../../../runtime/trainer/native/options.js';
import type { Feeds } from '../../../runtime/trainer/native/sessions.js';
import { demonstration, glyphTask } from '../../helpers/trainer/glyphScreens.js';

/**
 * A batch like a run's: `states` screens with `slots` sampled actions each, and the same numbers as files for
 * torch_peer.py.
 */
export function policySamples(spec: EmbeddedPolicySpec, states: number, slots: number, seed: number): EmbeddedSample[] {
  const rng = random(`problem/${seed}`),
    off = headOffsets(spec),
    n = headSizes(spec);
  return Array.from({ length: states }, (_, s) => {
    const task = glyphTask(spec, rng),
      demo = demonstration(spec, task, `s${s}`);
    return Array.from({ length: slots }, (_, k): EmbeddedSample => {
      const choices =
        k % 4 === 3
          ? Int32Array.of(3, off.cell + rng.int(n.cell), off.cell2 + rng.int(n.cell2))
          : k % 4 === 2
            ? Int32Array.of(6, off.key + rng.int(n.key))
            : Int32Array.of(0, off.cell + rng.int(n.cell));
      return {
        ...demo,
        rollout: id<RolloutId>(`r${k}`),
        choices,
        kind: 'policy',
        advantage: rng.normal(),
        rolloutLogprobs: Float32Array.from(choices, (c) => -Math.log(n[choiceOf(spec, c).head]) + 0.3 * rng.normal()),
      };
    });
  }).flat();
}

export function writeProblem(
  dir: string,
  m: PolicyModel,
  theta: Float32Array,
  feeds: Feeds,
  o: TrainerOptions,
  batch: number,
): void {
  mkdirSync(dir, { recursive: true });
  const decay = decayMask(m.layout),
    layout = placedParams(m.layout).map(({ name, shape, from }) => ({ name, shape, decay: decay[from] === 1 }));
  const lossParams = Object.fromEntries(LOSS_PARAMS.map((k, i) => [k, (feeds.lossParams!.data as Float32Array)[i]!]));
  const asks = m.spec.types.map((t) =>
    HEADS.filter((h) => h !== 'type').map((h) => (HEADS_OF_TYPE[t].includes(h) ? 1 : 0)),
  );
  writeFileSync(
    join(dir, 'problem.json'),
    JSON.stringify({
      spec: m.spec,
      size: m.size,
      layout,
      lossParams,
      asks,
      batch,
      slots: o.slots,
      tokens: TOKENS,
      adam: {
        lr: o.lr / o.warmup,
        beta1: o.beta1,
        beta2: o.beta2,
        epsilon: o.adamEpsilon,
        weightDecay: o.weightDecay,
        gradClip: o.gradClip,
      },
    }),
  );
  const write = (name: string, a: Float32Array | Int32Array | Uint8Array): void => {
    writeFileSync(join(dir, `${name}.bin`), new Uint8Array(a.buffer, a.byteOffset, a.byteLength));
  };
  write('theta', theta);
  for (const name of [
    'obs',
    'instruction',
    'history',
    'choices',
    'mask',
    'policyWeight',
    'imitationWeight',
    'rollout',
    'corrected',
    'advantage',
    'entropyWeight',
  ])
    write(name, feeds[name]!.data as Float32Array);
}
