import { MOST_DESKTOPS, PRESET_NAMES, PROVIDER_CHOICES } from '../domain/index.js';
import { z } from 'zod';
import { curationOptions } from './curation/index.js';
import { imageOptions, providerOptions } from './desktops.js';
import { engineOptions, openAiOptions, vlmOptions } from './remoteOptions.js';
import { count, flag, nonNegative, positive, section, share, whole, within } from './fields.js';
import { warmStartOptions } from './warmStart.js';
import { watchOptions } from './watch.js';

const hours = (whose: string) =>
  z.number().positive().optional().describe(`Screens ${whose} are kept for this many hours.`);

/**
 * The run file: every option of a training run, with its default and its meaning. The published JSON schema
 * (`dart-studio schema`) is generated from this and from what kinds of policy declare (runFileSchema.ts); the editor
 * completes and checks run files with it. "Paper" in a description is arXiv 2509.23866; its values are in the preset
 * `dart`.
 */
export const RunFileSchema = z.strictObject({
  $schema: z.string().optional().describe('Location of the JSON schema of this file, for editors.'),
  preset: z.enum(PRESET_NAMES).optional().describe('Start from a preset; keys given here override it.'),
  name: z
    .string()
    .regex(/^[\w.-]{1,64}$/, 'letters, digits, "-", "_" and "." only, at most 64')
    .default('run')
    .describe("Part of the run folder's name."),
  seed: whole(1, 'Seed of everything random in the run.'),

  run: section(
    {
      deterministic: flag(
        false,
        'Makes the run repeatable: one desktop, one replica, one rollout after another, every draw from seeds, time counted in rollouts and steps. After a crash it trains the same batches, byte for byte, as without one. Slow, and no benchmark.',
      ),
    },
    'How the run executes as a whole.',
  ),

  tasks: section(
    {
      suite: z
        .enum(['desk', 'folder', 'miniwob'])
        .default('desk')
        .describe(
          '`desk`: the built-in suite; `folder`: OSWorld task files under `dir`; `miniwob`: the pages of MiniWoB++ under `dir`, on desktops of the image `web`.',
        ),
      dir: z
        .string()
        .optional()
        .describe(
          'Folder of OSWorld task files (suite `folder`), or of MiniWoB++: a checkout, its unpacked wheel, or its folder `html` (suite `miniwob`).',
        ),
      assets: z
        .string()
        .optional()
        .describe('Folder of what tasks download: a mirror of `tasks fetch`, or one with a file `.dart-assets`.'),
      families: z
        .array(z.string())
        .optional()
        .describe(
          'Train only on these task families (templates); default: all training families of the suite. The preset `quickstart` names some of the suite `desk`.',
        ),
      trainSeeds: count(
        256,
        'Number of training seeds per family (texts, numbers, window positions). Held-out seeds are always disjoint.',
      ),
      looks: z
        .enum(['plain', 'varied'])
        .default('plain')
        .describe(
          'How training tasks of the suite `desk` look. `varied`: each in colours and letters of its own (one in four stays plain), for a policy that meets other themes.',
        ),
      infeasible: flag(false, 'Include tasks that cannot be done (the right answer is FAIL), reported separately.'),
    },
    'Tasks to train on.',
  ),

  desktops: section(
    {
      provider: z
        .enum(PROVIDER_CHOICES)
        .default('auto')
        .describe(
          '`auto`: Docker when an engine answers, else local sandboxed processes. `kubernetes`: pods of a cluster. `osworld`: servers of OSWorld, or its virtual machine.',
        ),
      ...imageOptions,
      count: within(1, MOST_DESKTOPS, 6, 'Desktops running at once.'),
      screen: section(
        { width: within(64, 8192, 640, 'Pixels.'), height: within(64, 8192, 400, 'Pixels.') },
        'Screen size; 1920x1080 with the image `osworld`.',
      ),
      // With less no desktop comes up, and starting it again changes nothing.
      memoryMb: z.int().min(128).default(512).describe('Memory limit of one desktop.'),
      pids: z.int().min(32).default(128).describe('Process limit of one desktop.'),
      cpus: positive(1, 'Processor limit of one desktop (Docker).'),
      ...providerOptions,
      hardResetEvery: whole(200, 'Replace a desktop by a new one after this many episodes; 0 = never.'),
      settleHorizonMs: positive(20, 'A desktop is at rest when no program has a timer due within this time.'),
      settleMaxMs: positive(2000, 'Longest wait for the desktop to come to rest after an action.'),
    },
    'Module 1, environment cluster.',
  ),

  policy: section(
    {
      // Which there are is said by policies/: runFileSchema.ts puts them in.
      kind: z.string().default('embedded'),
      replicas: count(2, 'Copies of the policy, one process each.'),
      temperature: positive(1, 'Sampling temperature of training rollouts.'),
      blind: flag(
        false,
        'The policy acts, learns and is evaluated with plain grey in place of every screen: what it learns then does not depend on seeing. For control experiments.',
      ),
      sync: z
        .enum(['replica', 'global'])
        .default('replica')
        .describe(
          'New weights go to one replica after another while the others answer (`replica`), or to all at once while none answers (`global`, for comparison).',
        ),
      vlm: vlmOptions.optional(),
      openai: openAiOptions.optional(),
    },
    'What turns screens into actions.',
  ),

  rollout: section(
    {
      maxSteps: count(12, 'Max steps of a rollout: turns of the model (paper: 30 to 50).'),
      taskTimeoutS: positive(120, 'A rollout that takes longer is an error, never a failure of the policy.'),
      regime: z
        .enum(['rollout', 'task', 'batch'])
        .default('rollout')
        .describe(
          'Barrier between rollouts: none (`rollout`), the rollouts of one task (`task`), or of a batch that is trained before the next one begins (`batch`); the last two are for comparison.',
        ),
      batchGroups: whole(
        0,
        'Groups rolled out per batch in regime `batch`; 0 = as many as an update takes (`trainer.batchGroups`).',
      ),
      retries: whole(
        2,
        'Rollouts of one group that are replaced after they end in an error; beyond this number the group continues with fewer.',
      ),
    },
    'Module 2, rollout service.',
  ),

  curation: section(
    {
      ...curationOptions,
      planner: z
        .enum(['shuffle', 'variance'])
        .default('shuffle')
        .describe(
          'Which task next: shuffled passes (paper), or more often where success is uncertain: more rollouts carry gradient, but tasks that always or never succeed are seldom met (see bench:curation).',
        ),
      uncertainty: positive(
        1,
        'Planner `variance`: tasks are drawn by (p(1 - p)) to this power; 2 wastes fewer rollouts on tasks that always or never succeed, and visits those less.',
      ),
      pilot: whole(
        0,
        'Rollouts of a group that are started first; the rest follow unless all ended alike and most likely would continue to. 0 = all at once. Gives fewer rollouts without gradient while tasks are unknown, but groups stay open longer.',
      ),
    },
    'Module 3, data manager: adaptive curation. Each mechanism can be switched off.',
  ),

  trainer: section(
    {
      algorithm: z
        .enum(['ppo', 'gspo', 'cispo'])
        .default('ppo')
        .describe(
          'Policy-gradient term: token-level clipped ratio (paper), sequence ratio, or clipped importance weights.',
        ),
      batchGroups: count(6, 'Groups per update (paper: 8).'),
      epochs: count(2, 'Optimizer passes over a batch (paper: 1).'),
      reuse: section(
        {
          enabled: flag(
            false,
            'Further passes over a batch, beyond `trainer.epochs`, while they are worthwhile: until the effective sample size falls below `ess`.',
          ),
          epochs: count(4, 'Maximum passes in total.'),
          ess: share(0.9, 'Effective sample size, as a share of the batch, from which another pass is made.'),
        },
        'Longer reuse of a batch under an effective-sample-size gate.',
      ),
      minibatchStates: whole(
        48,
        'Maximum model inputs per optimizer step; a batch is divided into equal parts. 0 = the whole batch in one step (paper).',
      ),
      replay: whole(
        0,
        'Pool successes that are imitated beside each batch (weight `imitationCoef`); 0 = none (paper).',
      ),
      replayVaried: flag(false, 'Vary them as the warm start varies what it imitates (`warmStart.shift`, `tones`).'),
      lr: positive(5e-4, 'AdamW learning rate (paper: 1e-6 for 7 B).'),
      lrDecay: share(
        0,
        'Last share of the budget, over which the learning rate falls to a tenth; 0 = it stays (paper).',
      ),
      weightDecay: nonNegative(0.01, 'AdamW weight decay (paper: 0.1).'),
      gradClip: positive(1, 'Global gradient norm (paper: 2).'),
      epsLow: positive(0.2, 'Lower clip (paper: 0.2).'),
      epsHigh: positive(0.28, 'Upper clip (paper: 0.28).'),
      dualClip: positive(10, "Dual clip c for negative advantages (paper's code: 10)."),
      tis: section(
        {
          enabled: flag(true, 'Truncated importance sampling: distribution alignment (paper).'),
          cap: positive(1, 'C (paper: 1).'),
        },
        'Truncated importance sampling.',
      ),
      klBeta: nonNegative(0, 'Weight of the k3 KL to the reference policy (paper: 0.1).'),
      targetKl: nonNegative(
        0,
        'KL, in nats per token, that an update may move the policy: its remaining minibatches are left out once the KL to the policy that it began with is above 1.5 times this. 0 = all are made (paper).',
      ),
      entropyBonus: nonNegative(
        0.005,
        'Weight of the entropy bonus (paper: 0, and the default of a `vlm`, which can have no other).',
      ),
      imitationCoef: nonNegative(
        0.2,
        'Weight of the imitation loss on the replayed successes beside a batch, against the policy samples of the batch.',
      ),
      imitation: z
        .enum(['fixed', 'adaptive'])
        .default('fixed')
        .describe(
          "`fixed`: every replayed success weighs `imitationCoef`. `adaptive`: times 3 where the policy's latest rollouts of its task family all failed, falling through 1 at half of them to 0.1 where all succeeded.",
        ),
      baseline: z
        .enum(['trajectory', 'step'])
        .default('trajectory')
        .describe(
          'Group statistics over trajectories, or over steps as in the paper. Also what is weighted equally in the loss: every trajectory, or every step.',
        ),
      credit: z
        .enum(['trajectory', 'fork', 'progress'])
        .default('trajectory')
        .describe(
          "Advantage of a step: its trajectory's (paper); `fork`: against the other trajectories that came through the same state; `progress`: what it brought the trajectory closer to success, by the verifier, which is then asked after every step where it answers within 200 ms and nothing has to be done before judging.",
        ),
      norm: z.enum(['std', 'none']).default('std').describe("Divide advantages by the group's standard deviation."),
      threads: count(1, 'ONNX Runtime threads of the trainer.'),
      remote: z
        .strictObject({
          engine: z
            .enum(['auto'])
            .optional()
            .describe(
              '`auto`: the single-GPU engine is started on this machine with the run, and ends with it; the first start installs what it needs (5 GB). This is the default if no `url` is given; a `url` replaces it.',
            ),
          url: z
            .url()
            .optional()
            .describe('Engine that speaks the Tinker protocol and is already running, e.g. http://127.0.0.1:8377'),
          apiKeyEnv: z
            .string()
            .optional()
            .describe('Environment variable that holds its key; it is sent to this address and nowhere else.'),
          options: engineOptions,
          rank: whole(16, 'Rank of the LoRA adapter that is trained; 0 = all weights.'),
          loss: z
            .enum(['client', 'server'])
            .default('client')
            .describe(
              '`client`: the gradient is computed here and sent as weights of the log-probs, exact for every objective at the price of one more forward pass; `server`: the engine computes `ppo` or `cispo` itself, where the probe proves that it is the same.',
            ),
        })
        .optional()
        .describe('Engine that trains a vision-language model (`policy.kind`: `vlm`).'),
    },
    'Module 4, trainer.',
  ),

  warmStart: warmStartOptions,

  evaluation: section(
    {
      episodes: whole(
        64,
        'Episodes per evaluation, greedy, separate from training; 0 = none. Of held-out seeds; a folder of tasks (`tasks.suite`: `folder`) has nothing held out, so there they are of the very tasks that are trained, a sample where these are more.',
      ),
      untrained: z.boolean().default(true).describe('Also evaluate the policy that training starts from.'),
      everyMinutes: nonNegative(
        5,
        'Evaluate this often during reinforcement learning; 0 = only at the start and the end.',
      ),
    },
    'Evaluation on a fixed set of tasks.',
  ),

  budget: section(
    {
      minutes: z
        .number()
        .positive()
        .optional()
        .describe('Stop after this long (demonstrations, warm start and evaluations counted).'),
      updates: z.int().positive().optional().describe('Stop after this many trainer updates.'),
      rollouts: z.int().positive().optional().describe('Stop after this many training rollouts without an error.'),
    },
    'When a run ends; none = when stopped.',
  ),

  watch: watchOptions,

  store: section(
    {
      dir: z.string().default('runs').describe('Folder of run folders.'),
      keepCheckpoints: count(3, 'Number of newest checkpoints to keep.'),
      keep: section(
        {
          retiredHours: hours('of rollouts that were retired: never trained, or ended by an error'),
          failureHours: hours('of failures that were trained or evaluated'),
          successHours: hours('of successes that were trained or evaluated, but for the newest of each family'),
          gigabytes: z
            .number()
            .positive()
            .optional()
            .describe(
              'Maximum GB of screens; beyond it the oldest go first: of retired rollouts, failures, successes.',
            ),
        },
        'Which screens are kept; none = all. Metrics and records are always kept, and so are screens that people annotated or that may be imitated.',
      ),
      tensorboard: section(
        {
          enabled: flag(false, 'Write event files for TensorBoard during the run.'),
          dir: z
            .string()
            .optional()
            .describe(
              'Folder with a subfolder of event files for each run, relative to the folder of runs. Default: `tensorboard` in the run folder.',
            ),
        },
        'TensorBoard.',
      ),
    },
    'Where runs are stored, and what is kept.',
  ),
});

export type RunConfig = z.output<typeof RunFileSchema>;
export type RunFile = z.input<typeof RunFileSchema>;
