import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { StudioError } from '../../domain/index.js';
import { copyWeights } from './copyWeights.js';
import type { WriteWeightsRequest, WrittenWeights } from './types.js';

/** The network of a checkpoint as ONNX Runtime loads it. */
export async function writeEmbeddedWeights(r: WriteWeightsRequest): Promise<WrittenWeights> {
  if (r.merged)
    throw new StudioError(
      'config.invalid',
      'The embedded policy is one network: there is no adapter to merge.',
      'Leave --merged out.',
    );
  const reader = existsSync(join(r.checkpoint, 'reader.onnx')) ? ['reader.onnx'] : [];
  await copyWeights(r.run, r.checkpoint, r.to, ['policy.onnx', ...reader, 'manifest.json']);
  return 'onnx';
}
