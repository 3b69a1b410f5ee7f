import { FOR_A_POOL, WHO_ACTS } from '../fullWeights.js';
import type { SourcedValues } from './sourced.js';

/**
 * The experiment of arXiv 2509.23866: UI-TARS-1.5-7B on OSWorld. "Paper" is its text, with the section where it is about
 * one thing; "code" is the training scripts and the rollout service that its authors released; "ours" is what neither
 * has.
 */
export const DART_VALUES: SourcedValues = {
  name: ['dart', 'ours'],
  // The model and what it is shown.
  'policy.kind': ['vlm', 'paper: a vision-language model, all of it trained'],
  'policy.vlm.model': ['ByteDance-Seed/UI-TARS-1.5-7B', 'paper: the base model of DART-GUI-7B'],
  'policy.vlm.endpoints': [
    ['http://127.0.0.1:8377/v1'],
    `ours: the engine of \`trainer.remote.url\`, since ${WHO_ACTS}. The main run had rollout servers on 4 GPUs. ${FOR_A_POOL}`,
  ],
  'policy.vlm.coordinates': ['qwen25', 'UI-TARS 1.5: pixels of the resized picture'],
  'policy.vlm.imageToken': [151_655, 'UI-TARS 1.5: `image_token_id` of its configuration'],
  'policy.vlm.images': [5, 'paper: the newest 5 screenshots; code: `limit_images=5`'],
  'policy.vlm.maxTokens': [500, 'code: `max_response_length=500`'],
  'policy.temperature': [1, 'paper: sampled at temperature 1'],
  'policy.sync': ['replica', 'paper: per-worker model synchronisation'],
  // OSWorld on the paper's pool of desktops, with any provider.
  'tasks.suite': ['folder', 'paper: OSWorld'],
  'tasks.dir': ['OSWorld/evaluation_examples/examples', 'OSWorld: its task files, in a checkout beside the run file'],
  'desktops.image': [
    'osworld',
    "OSWorld: the applications of its tasks (`provider: osworld` has OSWorld's own machines)",
  ],
  'desktops.count': [180, 'paper: 180 desktops in parallel (38 in the main run of the code)'],
  'desktops.screen': [{ width: 1920, height: 1080 }, 'OSWorld: the screen of its desktops'],
  'desktops.memoryMb': [4096, 'OSWorld: 4 GB each'],
  'rollout.maxSteps': [30, 'paper: 30 steps (50 for the longest tasks; its code counts one turn less)'],
  'rollout.taskTimeoutS': [1800, 'ours: 30 steps of a slow model on a busy cluster'],
  'rollout.regime': ['rollout', 'paper: rollout-wise sampling'],
  // Data curation.
  'curation.planner': ['shuffle', 'code: each pass takes every task once, shuffled'],
  'curation.dynamicRollouts.max': [8, 'paper 3.3: N = 8'],
  'curation.dynamicRollouts.threshold': [0.6, 'paper 3.3: fewer rollouts from a success rate of 0.6 on'],
  'curation.dynamicLength.enabled': [true, 'paper 3.3: max steps from the longest success of a task'],
  'curation.pool.enabled': [true, 'paper 3.3: one pre-collected success joins a group that failed'],
  'curation.pool.addSuccesses': [true, "code: the pool takes the policy's own successes"],
  'curation.pool.selection': ['newest', "code: the task's newest success"],
  'curation.pool.reuseCap': [0, 'code: a success may be used again without limit'],
  'curation.groupFilter.enabled': [true, 'code: groups that all succeeded are dropped'],
  'curation.highEntropy.enabled': [true, 'paper 3.4: only steps of high entropy are trained'],
  'curation.highEntropy.keep': [0.8, 'paper 3.4: the top 80 % of steps'],
  'curation.staleness.eta': [2, 'code: rows of the 2 newest versions'],
  // Objective and optimizer.
  'trainer.algorithm': ['ppo', 'paper: step-wise GRPO, the clipped ratio of every token'],
  'trainer.baseline': ['step', "paper: mean and deviation over the steps of a task's rollouts"],
  'trainer.credit': ['trajectory', "paper: every step has its trajectory's reward"],
  'trainer.norm': ['std', 'paper: advantages are divided by the deviation'],
  'trainer.tis.enabled': [true, 'paper 3.5: distribution alignment'],
  'trainer.tis.cap': [1, 'paper 3.5: C = 1'],
  'trainer.epsLow': [0.2, 'paper: 0.2 (the scripts: 0.1)'],
  'trainer.epsHigh': [0.28, 'paper: 0.28'],
  'trainer.dualClip': [10, 'code: `clip_ratio_c=10.0`'],
  'trainer.klBeta': [0.1, 'paper: beta = 0.1'],
  'trainer.entropyBonus': [0, 'code: `entropy_coeff=0`'],
  'trainer.lr': [1e-6, 'paper: 1e-6, for all weights; an adapter wants about ten times that'],
  'trainer.lrDecay': [0, 'code: a constant learning rate'],
  'trainer.weightDecay': [0.1, 'code: `optim.weight_decay=0.1`'],
  'trainer.gradClip': [2, 'code: `grad_clip=2.0`'],
  'trainer.batchGroups': [8, 'paper: 8 tasks of 8 rollouts (main run)'],
  'trainer.epochs': [1, 'paper: one pass'],
  'trainer.minibatchStates': [0, 'paper: one optimizer step per batch (main run)'],
  'trainer.replay': [0, 'paper: nothing is imitated beside a batch'],
  'trainer.imitationCoef': [0, 'paper: nothing is imitated beside a batch'],
  'trainer.remote.url': ['http://127.0.0.1:8377', 'ours: where `engine serve` listens'],
  'trainer.remote.rank': [0, `paper: all weights are trained. So ${WHO_ACTS}. ${FOR_A_POOL}`],
  'trainer.remote.loss': ['client', 'ours: no built-in loss of an engine has the KL term and the dual clip'],
};
