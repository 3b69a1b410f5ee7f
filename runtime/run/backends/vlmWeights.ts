import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StudioError } from '../../domain/index.js';
import { readForeignText } from '../../files/foreignFile.js';
import { mergeWeights } from '../../trainer/engine/merge.js';
import { checkPlain, hasWeights, weightsFolder } from '../../trainer/engine/state.js';
import { weightsIn } from '../../trainer/remote/savedState.js';
import { copyWeights, refused } from './copyWeights.js';
import { engineState } from './ownEngine.js';
import type { WriteWeightsRequest, WrittenWeights } from './types.js';

/** The adapter of a checkpoint in PEFT's layout, or a whole model folder. */
export async function writeVlmWeights(r: WriteWeightsRequest): Promise<WrittenWeights> {
  const { to } = r,
    { inside, weights } = await weightsOf(r),
    adapter = existsSync(join(weights, 'adapter_config.json'));
  if (adapter && !r.merged) {
    await copyWeights(inside, weights, to, ['adapter_model.safetensors']);
    const about = join(weights, 'adapter_config.json'),
      head = JSON.parse(await readForeignText(about, 1 << 20, { inside }).catch(refused(about))) as object;
    await writeFile(join(to, 'adapter_config.json'), `${JSON.stringify(head, null, 2)}\n`);
    return 'adapter';
  }
  await checkPlain(inside, weights);
  await mergeWeights({ model: r.config.policy.vlm!.model, weights, to, onLine: r.onLine, signal: r.signal });
  return 'model';
}

/** The folder in which an engine has the weights of a checkpoint, and the folder out of which no link leads. */
async function weightsOf(r: WriteWeightsRequest): Promise<{ readonly inside: string; readonly weights: string }> {
  const [uri] = await weightsIn(r.checkpoint),
    own = engineState(r.run),
    states = [own, ...r.states],
    state = uri === undefined ? undefined : states.find((s) => hasWeights(s, uri));
  if (uri !== undefined && state !== undefined)
    return { inside: state === own ? r.run : state, weights: weightsFolder(state, uri)! };
  throw new StudioError(
    'config.invalid',
    `The weights of this checkpoint are with the engine that trained it${uri === undefined ? '' : ` (${uri})`}, and not in ${states.join(' or ')}.`,
    "Give that engine's folder with --state (the --state of `engine serve`), on the machine where it ran; of another server, download the checkpoint by its own means.",
  );
}
