import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  POLICY_SPECS,
  READER_SPEC,
  StudioError,
  id,
  type EmbeddedPolicySpec,
  type ReplicaId,
} from '../../domain/index.js';
import { embeddedPolicy } from '../../policy/embedded/embeddedPolicy.js';
import { startReplica } from '../../policy/embedded/replica.js';
import type { Policy } from '../../policy/types.js';
import { systemClock } from '../../rollout/clock.js';
import { ModelPool } from '../../rollout/modelPool.js';
import { policyOfCheckpoint } from '../../trainer/checkpoint.js';
import { policyModel, writePolicyGraph } from '../../trainer/native/model/policyGraph.js';
import { exportTheta, loadCheckpoint } from '../../trainer/native/persistence.js';
import { blinded } from '../blindPolicy.js';
import { folderInside } from '../../files/folderParts.js';
import { processWork } from '../processWork.js';
import type { StartedParts } from './startedParts.js';
import type { BackendRequest } from './types.js';

/** The embedded policy that only acts: one replica with a checkpoint's weights, and no trainer process. */
export async function startEmbeddedActing(r: BackendRequest, parts: StartedParts): Promise<Policy> {
  if (!r.checkpoint)
    throw new StudioError(
      'config.invalid',
      'An embedded policy without a checkpoint has learned nothing.',
      'Choose a run that has a checkpoint.',
    );
  const spec = await specOfCheckpoint(r.checkpoint.dir),
    weightsDir = join(r.dir, '.weights'),
    graph = join(weightsDir, 'policy.graph.onnx');
  await folderInside(r.dir, weightsDir);
  parts.add(() => rm(weightsDir, { recursive: true, force: true }));
  const { theta } = await loadCheckpoint(r.checkpoint.dir, policyModel(spec)).catch(chooseAnother),
    // The version is the journal's: a run may begin with a checkpoint that another run wrote.
    weights = await exportTheta(weightsDir, r.checkpoint.version, theta);
  await writePolicyGraph(spec, graph);
  parts.throwIfCancelled();
  const models = await ModelPool.start({
    replicas: [id<ReplicaId>('replica-1')],
    weights,
    clock: systemClock,
    factory: (replica, w) =>
      startReplica({ id: replica, entry: r.entry, spec, graph, weights: w, workOf: processWork }),
  });
  parts.add(() => models.close());
  parts.throwIfCancelled();
  const policy = embeddedPolicy(spec, models);
  return r.config.policy.blind ? blinded(policy) : policy;
}

/** Replaces the remedy for an unusable checkpoint: a run can go back to an earlier one, here the user chooses another. */
function chooseAnother(e: unknown): never {
  if (!(e instanceof StudioError && e.kind === 'trainer.invalid')) throw e;
  throw new StudioError('trainer.invalid', e.message, 'Choose another version, or another run.', {
    details: { ...e.error.details },
    cause: e,
  });
}

/** The kind of embedded policy in a checkpoint. Rejects with `trainer.invalid` where this version has no such kind. */
export async function specOfCheckpoint(dir: string): Promise<EmbeddedPolicySpec> {
  const policy = await policyOfCheckpoint(dir);
  // The manifest cannot be read; reading the checkpoint reports why.
  if (policy === undefined) return READER_SPEC;
  const spec = POLICY_SPECS.find((s) => s.id === policy);
  if (spec) return spec;
  throw new StudioError(
    'trainer.invalid',
    `The checkpoint ${dir} is of the policy '${policy.slice(0, 100)}', which this version does not have; it has ${POLICY_SPECS.map((s) => `'${s.id}'`).join(' and ')}.`,
    'Choose another checkpoint, or use the version of DART Studio that made it.',
    { details: { dir } },
  );
}
