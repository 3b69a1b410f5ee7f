import { DECODES, PEAK } from '../gpuFigures.js';
import type { SourcedValues } from './sourced.js';

/**
 * A vision-language model on one GPU of 80 GB. The run starts the engine, which trains and samples in one process;
 * vLLM beside it takes over the sampling when `policy.vlm.endpoints` names it (runtime/config/README.md#models-on-one-gpu).
 */
const oneGpu = (name: string, model: SourcedValues): SourcedValues => ({
  name: [name, 'ours'],
  'policy.kind': ['vlm', 'a vision-language model, trained by `trainer.remote`'],
  ...model,
  'policy.vlm.images': [5, 'paper: the newest 5 screenshots'],
  'policy.vlm.maxTokens': [400, 'a thought and an action take 60 to 200 tokens'],
  'policy.vlm.concurrency': [8, `the engine ${DECODES}; more only fill its memory`],
  'desktops.count': [4, 'as many as the engine keeps busy: it has no prefix cache; with vLLM 8 to 16'],
  'desktops.screen': [{ width: 1280, height: 720 }, 'fewer than half the image tokens of 1920x1080'],
  'rollout.maxSteps': [12, 'tasks of the built-in suite take 1 to 8 steps'],
  'rollout.taskTimeoutS': [600, '12 decisions of several seconds each, on a busy GPU'],
  'curation.dynamicRollouts.max': [6, 'groups large enough to differ; each rollout costs a minute'],
  'trainer.batchGroups': [4, 'about 100 steps an update: some minutes at 7 to 8 B'],
  'trainer.epochs': [1, 'paper: one pass; each further pass costs as much again'],
  'trainer.minibatchStates': [0, 'paper: one optimizer step per batch'],
  'trainer.replay': [0, 'paper: nothing is imitated beside a batch'],
  'trainer.imitationCoef': [0, 'paper: nothing is imitated beside a batch'],
  'trainer.lr': [1e-5, "ten times the paper's 1e-6: an adapter wants more than all weights do"],
  'trainer.weightDecay': [0, 'an adapter starts at zero; decay would only hold it there'],
  'trainer.gradClip': [1, 'ours'],
  'trainer.klBeta': [0, 'the KL term would cost one more forward pass an update; the paper has 0.1'],
  'trainer.entropyBonus': [0, 'paper: none'],
  'trainer.remote.engine': [
    'auto',
    'started with the run; `trainer.remote.url` and `policy.vlm.endpoints` take its place',
  ],
  'trainer.remote.rank': [16, `LoRA of the language model: ${PEAK}`],
  'trainer.remote.loss': ['client', 'exact for every objective'],
  'evaluation.episodes': [16, 'an episode costs a minute'],
  'evaluation.everyMinutes': [0, 'at the start and the end'],
  'budget.minutes': [240, 'some fifty updates'],
});

export const UI_TARS_7B_VALUES: SourcedValues = oneGpu('ui-tars-7b', {
  'policy.vlm.model': ['ByteDance-Seed/UI-TARS-1.5-7B', "the model's name on the Hugging Face hub; a folder works too"],
  'policy.vlm.coordinates': ['qwen25', 'UI-TARS 1.5 writes pixels of the resized picture: 1288x728 at 1280x720'],
  'policy.vlm.imageToken': [151_655, '`image_token_id` of its configuration (Qwen2.5-VL)'],
});

export const QWEN3_VL_8B_VALUES: SourcedValues = oneGpu('qwen3-vl-8b', {
  'policy.vlm.model': ['Qwen/Qwen3-VL-8B-Instruct', "the model's name on the Hugging Face hub; a folder works too"],
  'policy.vlm.coordinates': ['relative999', 'Qwen3-VL writes 0 to 999 across the screen'],
  'policy.vlm.imageToken': [151_655, '`image_token_id` of its configuration (Qwen3-VL)'],
});

/** OSWorld on one machine: the same engine and model, the screen, desktops and episodes of the benchmark. */
export const OSWORLD_VALUES: SourcedValues = {
  ...UI_TARS_7B_VALUES,
  name: ['osworld', 'ours'],
  'tasks.suite': ['folder', 'OSWorld'],
  'tasks.dir': ['OSWorld/evaluation_examples/examples', 'OSWorld: its task files, in a checkout beside the run file'],
  'tasks.infeasible': [true, 'OSWorld: 28 tasks cannot be done, and saying so is right; they are counted apart'],
  'desktops.image': [
    'osworld',
    "OSWorld: the applications of its tasks (`provider: osworld` has OSWorld's own machines)",
  ],
  'desktops.count': [4, '4 GB each at most; as many as the engine keeps busy'],
  'desktops.screen': [{ width: 1920, height: 1080 }, 'OSWorld: the screen of its desktops'],
  'desktops.memoryMb': [4096, 'OSWorld: 4 GB each'],
  'policy.vlm.coordinates': ['qwen25', 'UI-TARS 1.5 writes pixels of the resized picture: 1932x1092 at 1920x1080'],
  'rollout.maxSteps': [30, 'paper: 30 steps'],
  'rollout.taskTimeoutS': [1800, '30 decisions of several seconds each, on a busy GPU'],
  'curation.pool.enabled': [true, 'paper: one pre-collected success joins a group that failed'],
  'curation.pool.addSuccesses': [true, "the policy's own successes join it"],
  'evaluation.episodes': [32, 'an episode costs minutes'],
  'budget.minutes': [1440, 'a day; some hundred updates'],
};
