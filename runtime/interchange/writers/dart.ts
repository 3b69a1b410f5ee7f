import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sampledRemotely, type Step, type Trajectory } from '../../domain/index.js';
import { messagesOf, uiTarsPrompt } from '../../policy/actions/prompt.js';
import { formatAnswer } from '../../policy/actions/uiTars.js';
import { ownKey, ownOf } from '../own.js';
import { writeTensors } from '../torchFile.js';
import { Unusable } from '../types.js';
import { copyFrame, fileName } from './write.js';
import type { WriteContext, Writer } from './write.js';

/**
 * Rollout folders as DART's rollouter writes them and its trainer reads them: `<task>_<rollout>/` with the dialogue, a
 * picture before each answer, reward.txt, and token ids and log-probs of each answer as `torch.save` has them (empty
 * where they are not known). The trainer takes what precedes the first `_` for the task.
 */
export function dartWriter({ run, dir, options }: WriteContext): Writer {
  return {
    async add(t) {
      if (t.instruction === '') throw new Unusable('its instruction is not known');
      if (t.steps.some((s) => s.actions.length === 0)) throw new Unusable('a step has no action that is known');
      const folder = join(dir, `${fileName(t.task).replaceAll('_', '%5f')}_${fileName(t.id)}`);
      await mkdir(folder, { recursive: true });
      try {
        await writeFolder(t, folder);
      } catch (e) {
        await rm(folder, { recursive: true, force: true });
        throw e;
      }
    },
    close: () => Promise.resolve(),
  };

  async function writeFolder(t: Trajectory, folder: string): Promise<void> {
    const pictures = t.steps.map((s) => s.frame);
    // DART's trainer counts an answer only when a message follows it, so a screen comes last.
    for (const [k, frame] of [...pictures, t.last ?? pictures.at(-1)!].entries())
      await copyFrame(run, frame, join(folder, pictureName(k)));
    const json = async (name: string, value: unknown): Promise<void> =>
      writeFile(join(folder, name), `${JSON.stringify(value, null, 2)}\n`);
    await json('task_config.json', {
      id: t.task,
      instruction: t.instruction,
      [ownKey]: ownOf(t, t.last && pictureName(t.steps.length)),
    });
    await json(
      'final_messages.json',
      dialogueOf(t, (s) => answerOf(s, options.coordinates)),
    );
    for (const [k, s] of t.steps.entries())
      await writeFile(join(folder, `data_for_step_${k + 1}.pt`), writeTensors(tensorsOf(s)));
    // Last: a folder with a reward is whole.
    await writeFile(join(folder, 'reward.txt'), `${t.outcome.kind === 'error' ? 0 : t.outcome.reward}\n`);
  }
}

const pictureName = (k: number): string => `image_${String(k).padStart(4, '0')}.png`;
const answerOf = (s: Step, mode: WriteContext['options']['coordinates']): string =>
  formatAnswer({ thought: s.thought || undefined, actions: s.actions }, { mode, screen: s.frame, boxTokens: true });

/** User and model in turn: the prompt is one message with the first picture, and a picture follows the last answer. */
function dialogueOf(t: Trajectory, answer: (s: Step) => string): unknown[] {
  const [system] = messagesOf(uiTarsPrompt(t.instruction), [], ''),
    picture = (k: number): unknown => ({ type: 'image_url', image_url: pictureName(k) });
  return [
    system,
    { role: 'user', content: [{ type: 'text', text: uiTarsPrompt(t.instruction) }, picture(0)] },
    ...t.steps.flatMap((s, k) => [
      { role: 'assistant', content: answer(s) },
      { role: 'user', content: [picture(k + 1)] },
    ]),
  ];
}

/**
 * Tensors of the answer that was acted on, where a model of tokens gave it; absent where a log-prob is not known, since
 * DART has no word for that.
 */
function tensorsOf(s: Step): { readonly logp: Float32Array; readonly token_ids: Int32Array } {
  const { tokens } = s;
  if (!sampledRemotely(s) || !tokens?.ids || tokens.logprobs.some(Number.isNaN))
    return { logp: new Float32Array(), token_ids: new Int32Array() };
  return { logp: tokens.logprobs, token_ids: tokens.ids };
}
