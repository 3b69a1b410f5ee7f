import { FOR_A_POOL, WHO_ACTS } from '../fullWeights.js';
import type { SourcedValues } from './sourced.js';

/**
 * The experiment of arXiv 2509.23866v1: UI-TARS-1.5-7B on OSWorld. Each source names its place: "paper, abstract" (what
 * was read of the paper's text when these were checked, 2026-11), a file of DART's released code, or OSWorld's or the
 * model's own. A value that neither paper nor code states begins with "not in the paper"; of one that the paper states
 * and the code does not, "place in the paper not verified" is said.
 */
const GUI = 'dart-gui@5daa12da',
  ROLLOUTER = 'dart_rollouter@92ccb486';
/** The released script of 152 tasks and 30 steps on two nodes. */
const SCRIPT = `${GUI} examples/osworld/async/run_trainer_debug_w_rollout_stepwise_maxstep30_trainset152_2node_0913.sh`,
  FILTER = 'dart-gui@29bb82c2 verl/utils/dataset/trainable_filter.py',
  DATASET = 'dart-gui@0a6dc210 verl/utils/dataset/osworld_dataset_iter.py',
  ALGOS = 'dart-gui@b8caebb5 verl/trainer/ppo/core_algos.py',
  VARIANT = 'dart-gui@2306c7c0 verl/trainer/ppo/core_algos_zirui.py',
  DEFAULTS = 'dart-gui@f3596a67 verl/trainer/config/ppo_trainer_osworld.yaml',
  ROLLOUT_CONFIG = `${ROLLOUTER} config/config_dynamic_rollouter.yaml`,
  TASKS = `${ROLLOUTER} task_loader.py`,
  NOT_VERIFIED = 'place in the paper not verified';

export const DART_VALUES: SourcedValues = {
  name: ['dart', 'not in the paper; our choice'],
  // The model and what it is shown.
  'policy.kind': ['vlm', 'paper, abstract: agents based on vision-language models'],
  'policy.vlm.model': [
    'ByteDance-Seed/UI-TARS-1.5-7B',
    `DART's code, ${SCRIPT}: MODEL_PATH; the base model of DART-GUI-7B, the paper's abstract gives the gain over it`,
  ],
  'policy.vlm.endpoints': [
    ['http://127.0.0.1:8377/v1'],
    `not in the paper; our choice: the engine of \`trainer.remote.url\`, since ${WHO_ACTS}. The main run had rollout servers on 4 GPUs. ${FOR_A_POOL}`,
  ],
  'policy.vlm.coordinates': ['qwen25', 'not in the paper; of the model: pixels of the resized picture'],
  'policy.vlm.imageToken': [151_655, 'not in the paper; of the model: `image_token_id` of its config.json'],
  'policy.vlm.images': [5, `DART's code, ${SCRIPT}: limit_images=5`],
  'policy.vlm.maxTokens': [500, `DART's code, ${SCRIPT}: max_response_length=500`],
  'policy.temperature': [1, `DART's code, ${ROLLOUT_CONFIG}: model_pool.temperature`],
  'policy.sync': ['replica', 'paper, abstract: per-worker model synchronization'],
  // OSWorld on the paper's pool of desktops, with any provider.
  'tasks.suite': ['folder', 'paper, abstract: OSWorld'],
  'tasks.dir': [
    'OSWorld/evaluation_examples/examples',
    'not in the paper; of OSWorld: its task files, in a checkout beside the run file',
  ],
  'desktops.image': [
    'osworld',
    "not in the paper; of OSWorld: the applications of its tasks (`provider: osworld` has OSWorld's own machines)",
  ],
  'desktops.count': [
    180,
    `paper: 180 desktops in parallel (${NOT_VERIFIED}); fewer in released configurations: ${ROLLOUT_CONFIG}: max_concurrent_envs=19`,
  ],
  'desktops.screen': [{ width: 1920, height: 1080 }, `DART's code, ${ROLLOUT_CONFIG}: screen_size`],
  'desktops.memoryMb': [4096, 'not in the paper; of OSWorld: 4 GB each'],
  'rollout.maxSteps': [30, `DART's code, ${SCRIPT}: max_steps=30`],
  'rollout.taskTimeoutS': [1800, 'not in the paper; our choice: 30 steps of a slow model on a busy cluster'],
  'rollout.regime': ['rollout', 'paper, abstract: rollout-wise trajectory sampling'],
  // Data curation.
  'curation.planner': ['shuffle', `DART's code, ${TASKS}: poll_for_tasks shuffles all tasks for each pass`],
  'curation.dynamicRollouts.max': [8, `DART's code, ${SCRIPT}: rollout_n=8`],
  'curation.dynamicRollouts.threshold': [0.6, `DART's code, ${ROLLOUT_CONFIG}: success_rate_threshold`],
  'curation.dynamicLength.enabled': [
    true,
    'paper, abstract: trajectory lengths adjusted by task difficulty (in no released code)',
  ],
  'curation.pool.enabled': [
    true,
    `paper, abstract: pre-collected successes supplement sparse success; DART's code, ${FILTER}: one joins a group that failed`,
  ],
  'curation.pool.addSuccesses': [true, `DART's code, ${FILTER}: any success of the task so far`],
  'curation.pool.selection': ['newest', `DART's code, ${FILTER}: the task's newest success`],
  'curation.pool.reuseCap': [0, `DART's code, ${FILTER}: a success may be used again without limit`],
  'curation.groupFilter.enabled': [true, `DART's code, ${FILTER}: groups with mean reward 1 are dropped`],
  'curation.highEntropy.enabled': [true, 'paper, abstract: trained selectively on high-entropy steps'],
  'curation.highEntropy.keep': [0.8, `paper: the top 80 % of steps (${NOT_VERIFIED}; in no released code)`],
  'curation.staleness.eta': [1, `DART's code, ${DATASET}: top_mvs_n=2, rows of the 2 newest versions`],
  // Objective and optimizer.
  'trainer.algorithm': ['ppo', `DART's code, ${ALGOS}: compute_policy_loss, the clipped ratio of every token`],
  'trainer.baseline': [
    'step',
    `DART's code, ${ALGOS}: compute_grpo_outcome_advantage over all samples of a task, and ${SCRIPT}: splitter=stepwise, a sample a step`,
  ],
  'trainer.credit': ['trajectory', `DART's code, ${DATASET}: a trajectory has one reward`],
  'trainer.norm': ['std', `DART's code, ${ALGOS}: norm_adv_by_std_in_grpo`],
  'trainer.tis.enabled': [
    true,
    `paper, abstract: truncated importance sampling; DART's code, ${SCRIPT}: use_vllm_logp=True`,
  ],
  'trainer.tis.cap': [1, `paper: C = 1 (${NOT_VERIFIED}); a variant in DART's code, ${VARIANT}: 0.5`],
  'trainer.epsLow': [0.2, `paper: 0.2 (${NOT_VERIFIED}); DART's code, ${SCRIPT}: clip_ratio_low=0.1`],
  'trainer.epsHigh': [0.28, `DART's code, ${SCRIPT}: clip_ratio_high=0.28`],
  'trainer.dualClip': [10, `DART's code, ${SCRIPT}: clip_ratio_c=10.0`],
  'trainer.klBeta': [0.1, `DART's code, ${SCRIPT}: kl_loss_coef=0.1`],
  'trainer.entropyBonus': [0, `DART's code, ${SCRIPT}: entropy_coeff=0`],
  'trainer.lr': [1e-6, `DART's code, ${SCRIPT}: optim.lr=1e-6, for all weights; an adapter wants about ten times that`],
  'trainer.lrDecay': [0, `DART's code, ${DEFAULTS}: warmup_style=constant, which its scripts leave`],
  'trainer.weightDecay': [0.1, `DART's code, ${SCRIPT}: optim.weight_decay=0.1`],
  'trainer.gradClip': [2, `DART's code, ${SCRIPT}: grad_clip=2.0`],
  'trainer.batchGroups': [8, `DART's code, ${SCRIPT}: train_batch_size_max=8 tasks of rollout_n=8`],
  'trainer.epochs': [1, `DART's code, ${DEFAULTS}: ppo_epochs=1, which its scripts leave`],
  'trainer.minibatchStates': [
    0,
    `paper: one optimizer step per batch in the main run (${NOT_VERIFIED}); DART's code, ${SCRIPT}: ppo_mini_batch_size=64, as many as a batch has trajectories`,
  ],
  'trainer.replay': [0, `DART's code, ${SCRIPT}: use_sft_loss=False, nothing is imitated beside a batch`],
  'trainer.imitationCoef': [0, `DART's code, ${SCRIPT}: use_sft_loss=False, nothing is imitated beside a batch`],
  'trainer.remote.url': ['http://127.0.0.1:8377', 'not in the paper; our choice: where `engine serve` listens'],
  'trainer.remote.rank': [
    0,
    `DART's code, ${DEFAULTS}: lora_rank=0, which its scripts leave: all weights are trained. So ${WHO_ACTS}. ${FOR_A_POOL}`,
  ],
  'trainer.remote.loss': [
    'client',
    'not in the paper; our choice: no built-in loss of an engine has the KL term and the dual clip',
  ],
};
