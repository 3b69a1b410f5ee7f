import type { Command } from 'commander';
import { providerWords } from '../domain/index.js';
import { withCluster, type Act } from './command.js';
import type { Options } from './options.js';

/** The commands that let a policy act: measure, collect, try. */
export function actingCommands(program: Command, act: Act): void {
  evaluateCommand(program, act);
  collectCommand(program, act);
  tryCommand(program, act);
}

function evaluateCommand(program: Command, act: Act): void {
  withCluster(program.command('evaluate'))
    .argument('[run]', 'run id or folder; none with --policy')
    .description(
      'Evaluate a checkpoint of a run on the tasks of its evaluations; or, with --policy and --out, any model on any tasks.',
    )
    .option('--checkpoint <version>', 'policy version, 0: before it learned anything; default: the newest')
    .option('--episodes <n>', 'episodes of the evaluation; with --policy: of each task file, or of each family (1)')
    .option(
      '--split <name>',
      'train; heldout (the words of training, arranged otherwise), words (unseen ones), pairs, looks, places and styles (the two parts of looks), near (unseen words among near-duplicates); templates (never trained on), fresh (never trained on, and not considered when the training templates were chosen). A folder has nothing held out: its tasks are those that are trained',
      'heldout',
    )
    .option('--dev', 'tasks for tuning, in place of those whose figures are reported', false)
    .option('--skip <n>', 'leave out the first n tasks of each family: those of an earlier evaluation')
    .option('--sampled', 'sample as in training, instead of the most probable choice', false)
    .option('--blind', 'blank the screen: shows which tasks are solved without seeing it', false)
    .option(
      '--random',
      'choose at random among all possible actions: shows which tasks are solved without a policy',
      false,
    )
    .option(
      '--policy <policy>',
      'policy that acts: run file, run folder, checkpoint, or address of a model server (…/v1)',
    )
    .option(
      '--tasks <dir or suite>',
      'with --policy: folder of OSWorld task files, a copy of MiniWoB++, or desk; default: those of the policy',
    )
    .option('--out <dir>', "folder for results, in OSWorld's layout; the same command continues where it stopped")
    .option('--families <names>', 'only these families of tasks, with commas')
    .option('--assets <dir>', 'with --policy: what `tasks fetch` mirrored')
    .option('--image <name>', 'with --policy: desktop image; default: that of the policy')
    .option('--image-extra <dir>', 'with --policy: a layer of your own upon the image (desktops.imageExtra)')
    .option('--screen <size>', "with --policy: size of the screen, e.g. 1280x720; default: the policy's or the image's")
    .option(
      '--network <name>',
      'with --policy: none, or internet for tasks that visit the live web (providers docker and osworld)',
    )
    .option('--max-steps <n>', 'with --policy: max steps of an episode')
    .option('--task-timeout <s>', 'with --policy: seconds of an episode; default: a minute a step')
    .option('--desktops <n>', 'with --policy: desktops at once')
    .option('--model <name>', 'of a model server: the model; default: the first it names')
    .option('--coordinates <name>', 'of a model server: qwen25, relative1000, relative999 or relative1')
    .option('--json', 'result as JSON', false)
    .option('--runs <dir>', 'folder of run folders', 'runs')
    .option('--provider <name>', providerWords)
    .action(act(async (run: string | undefined, o: Options) => (await import('./evaluate.js')).evaluate(run, o)));
}

function tryCommand(program: Command, act: Act): void {
  program
    .command('try')
    .description(
      'Let a policy carry out one instruction on a fresh desktop; its steps are printed as JSON, one per line.',
    )
    .requiredOption(
      '--policy <policy>',
      'policy that acts: run folder, checkpoint, run file, or address of a model server (…/v1)',
    )
    .option('--instruction <text>', 'instruction; default: that of the task')
    .option('--task <family>', 'task family that sets the desktop up; default: an empty desktop')
    .option('--seed <n>', 'seed of the task; default: one of the training seeds')
    .option('--checkpoint <version>', 'of a run folder: policy version; default: the newest')
    .option('--sampled', 'sample choices as in training; default: the most probable ones', false)
    .option('--max-steps <n>', 'max steps of an episode')
    .option('--image <name>', 'desktop image; default: that of the policy')
    .option('--model <name>', 'of a model server: the model; default: the first it names')
    .option('--coordinates <name>', 'of a model server: qwen25, relative1000, relative999 or relative1')
    .option('--provider <name>', providerWords)
    .action(act(async (o: Options) => (await import('./try.js')).tryPolicy(o)));
}

function collectCommand(program: Command, act: Act): void {
  program
    .command('collect')
    .description('Roll out a model on tasks and keep its verified successes as a pool that runs can use.')
    .requiredOption('--policy <policy>', 'policy that acts: run file, run folder, or address of a model server (…/v1)')
    .option('--into <name>', 'collection to create, or to continue', 'collected')
    .option(
      '--tasks <dir or suite>',
      'folder of OSWorld task files, a copy of MiniWoB++, or desk; default: those of the run file',
    )
    .option('--families <names>', 'only these families, with commas')
    .option('--attempts <n>', 'verdicts of each task', '32')
    .option('--stop-after <n>', 'leave a task after this many successes')
    .option('--seeds <n>', 'tasks of each family of a suite', '1')
    .option('--temperature <t>', 'sampling temperature (policy.temperature); default: that of the run file')
    .option('--max-tokens <n>', 'max tokens of one answer (policy.….maxTokens); default: that of the run file, or 512')
    .option('--images <n>', 'newest screenshots in the prompt (policy.….images); default: that of the run file, or 5')
    .option('--max-steps <n>', 'max steps of an episode (rollout.maxSteps)')
    .option('--seed <n>', 'seed of the sampling (seed)')
    .option('--model <name>', 'of a model server: the model; default: the first it names')
    .option('--coordinates <name>', 'of a model server: qwen25, relative1000, relative999 or relative1')
    .option('--checkpoint <version>', 'of a run folder: policy version; default: the newest')
    .option('--provider <name>', providerWords)
    .option('--desktops <n>', 'desktops at once')
    .option('--runs <dir>', 'folder of run folders', 'runs')
    .option('--json', 'report as JSON', false)
    .action(act(async (o: Options) => (await import('./collect.js')).collectAttempts(o)));
}
