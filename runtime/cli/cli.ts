import { Command, CommanderError } from 'commander';
import { DEFAULT_IMAGE, PRESET_NAMES, providerWords } from '../domain/index.js';
import { thisBuild } from '../server/build.js';
import { serveFlagsHelp } from '../trainer/engine/serveOptions.js';
import { asCalled } from './called.js';
import { actingCommands } from './actingCommands.js';
import { withAlerts, withCluster, type Act } from './command.js';
import { alertTargets, textOption, type Options } from './options.js';
import { endOf } from './endOf.js';
import { printJson, tell } from './output.js';
import { watchOutput } from './outputErrors.js';
import type { TrainServed } from './train.js';

/** The commands of the daemon's own room; each resolves when clients can attach, and its process ends by itself. */
export interface DaemonCommands {
  serve(
    storage: string,
    o: { readonly idleMinutes?: string; readonly alerts?: ReturnType<typeof alertTargets> },
  ): Promise<void>;
  readonly train: TrainServed;
}

/** Commands and options; runtime/cli/README.md is made from them. `ended` hears a command's exit code. */
export function createProgram(daemon: DaemonCommands, ended: (code: number) => void): Command {
  const program = new Command('dart-studio')
    .description('Train computer-use agents by reinforcement learning on real desktops.')
    .version(thisBuild.version)
    .exitOverride()
    .showSuggestionAfterError();
  const act: Act =
    (f) =>
    async (...a) => {
      // Run files may have every kind of policy that is registered.
      await import('../run/backends/index.js');
      ended((await f(...a)) ?? 0);
    };
  trainingCommands(program, act, daemon);
  interchangeCommands(program, act);
  modelCommand(program, act);
  taskCommands(program, act);
  osworldCommands(program, act);
  desktopCommands(program, act);
  kubernetesCommands(program, act);
  runCommands(program, act);
  engineCommands(program, act);
  machineCommands(program, act, daemon);
  return program;
}

function trainingCommands(program: Command, act: Act, daemon: DaemonCommands): void {
  withAlerts(withCluster(program.command('train')))
    .argument('[run.json]', 'run file')
    .description('Train a policy; without a run file, with the preset.')
    .option('--preset <name>', PRESET_NAMES.join(', '))
    .option('--resume <run>', 'continue a run: its id or folder')
    .option('--json', 'status as JSON lines', false)
    .option('--seed <n>', 'seed of the run')
    .option('--minutes <n>', 'stop after this many minutes in all, those before --resume among them')
    .option('--more-minutes <n>', 'with --resume: go on for this many minutes, whatever the run file bounds')
    .option('--provider <name>', providerWords)
    .option('--desktops <n>', 'desktops at once')
    .option('--runs <dir>', 'folder of run folders')
    .option(
      '--figures [file.json]',
      'afterwards, evaluate the policy on everything held out (of a folder, which has nothing held out: on its tasks), each with a blank screen too, and a choice at random: report.html and figures.json in the run folder',
    )
    .option(
      '--serve <storage>',
      'let windows of VS Code attach while it trains: folder for the record with port and token, as of `serve`',
    )
    .action(
      act(async (file: string | undefined, o: Options) => (await import('./train.js')).train(file, o, daemon.train)),
    );
  actingCommands(program, act);
}

function interchangeCommands(program: Command, act: Act): void {
  program
    .command('import')
    .argument(
      '<path>',
      'folder or file: OSWorld results, AgentNet (OpenCUA) JSONL, DART rollouts, UI-TARS recordings, .traj.jsonl',
    )
    .description('Import trajectories; successes join the experience pool.')
    .option('--into <run>', 'run to import into: its id or folder')
    .option('--new <name>', 'make a new run of this name')
    .option('--format <name>', 'auto, osworld, agentnet, dart, ui-tars or traj', 'auto')
    .option('--dry-run', 'only report what would be imported and what cannot be used', false)
    .option('--no-pool', 'keep successes out of the experience pool')
    .option('--tasks <dir>', 'OSWorld task files, for instructions that results lack')
    .option('--verdict <outcome>', 'success or failure, for recordings that have no verdict')
    .option('--coordinates <name>', 'coordinates of UI-TARS text, where they cannot be detected')
    .option('--json', 'report as JSON', false)
    .option('--runs <dir>', 'folder of run folders', 'runs')
    .action(act(async (path: string, o: Options) => (await import('./import.js')).importTrajectories(path, o)));
  program
    .command('export')
    .argument('<run>', 'run id or folder; with --format html also a .traj.jsonl file')
    .argument('<dir>', 'folder to make; with --format html a file')
    .description("Export a run's finished trajectories; or the run, or one of them, as a page for others.")
    .option('--format <name>', 'osworld, agentnet, dart, openai (messages for supervised fine-tuning), traj or html')
    .option('--rollout <id>', 'with html: the page of this trajectory; default: the page of the run')
    .option('--outcome <name>', 'success or failure; default: both')
    .option('--family <name>', 'only this family')
    .option('--tag <name...>', 'only trajectories with one of these tags')
    .option('--reviewed', 'only those a person has reviewed')
    .option('--without <marks>', 'leave out steps marked redundant, wrong or both: redundant,wrong')
    .option('--evaluations', 'also episodes of evaluations, which are no training data')
    .option('--as-recorded', 'outcomes and steps as recorded, not as people corrected them', false)
    .option('--split <share>', 'share of trajectories in train/, the rest in test/; no task in both')
    .option('--seed <n>', 'seed of the split')
    .option(
      '--coordinates <name>',
      'of UI-TARS text: qwen25, relative1000, relative999, relative1 or absolute',
      'qwen25',
    )
    .option('--json', 'report as JSON', false)
    .option('--runs <dir>', 'folder of run folders', 'runs')
    .action(
      act(async (run: string, dir: string, o: Options) =>
        (await import('./export.js')).exportTrajectories(run, dir, o),
      ),
    );
}

function modelCommand(program: Command, act: Act): void {
  program
    .command('export-model')
    .argument('<run>', 'run id or folder')
    .argument('<dir>', 'folder to make')
    .description(
      "Write a run's trained weights as transformers and vLLM load them; of an embedded policy, its ONNX file.",
    )
    .option('--merged', 'a whole model in place of an adapter', false)
    .option('--checkpoint <version>', 'policy version; default: the newest')
    .option('--state <folder>', '--state of an engine that the run did not start itself')
    .option('--json', 'as JSON', false)
    .option('--runs <dir>', 'folder of run folders', 'runs')
    .action(
      act(async (run: string, dir: string, o: Options) => (await import('./exportModel.js')).writeModel(run, dir, o)),
    );
}

const IMAGE_EXTRA = ['--image-extra <dir>', 'a layer of your own upon it (desktops.imageExtra)'] as const;
function taskCommands(program: Command, act: Act): void {
  const tasks = program.command('tasks').description('Task files and suites.');
  tasks
    .command('check')
    .argument('<dir>', 'folder of OSWorld task files, or a copy of MiniWoB++')
    .description(
      'Report for each task whether it can run here, or what it needs. Pages of MiniWoB++ are opened in a browser.',
    )
    .option('--assets <dir>', 'folder that mirrors downloaded files')
    .option('--image <name>', 'desktop image', DEFAULT_IMAGE)
    .option(...IMAGE_EXTRA)
    .option('--provider <name>', `where pages of MiniWoB++ are opened: ${providerWords}`, 'auto')
    .option('--json', 'rows as JSON', false)
    .action(act(async (dir: string, o: Options) => (await import('./tasks.js')).check(dir, o)));
  tasks
    .command('fetch')
    .argument('<dir>', 'folder of OSWorld task files')
    .description(
      'Download the files that tasks need into a folder, so that runs need no network; continues where it was interrupted.',
    )
    .requiredOption('--into <dir>', 'folder of the mirror: --assets and tasks.assets of a run file')
    .option('--mirror <url>', "download from here in place of each address's own host")
    .option('--allow-private', 'also from addresses of this machine and its network, if a task names one', false)
    .option('--json', 'report as JSON', false)
    .action(act(async (dir: string, o: Options) => (await import('./tasks.js')).fetchFiles(dir, o)));
  tasks
    .command('list')
    .description('Families of the built-in suite.')
    .option('--json', 'rows as JSON', false)
    .action(act(async (o: Options) => (await import('./tasks.js')).list(o)));
}

function osworldCommands(program: Command, act: Act): void {
  program
    .command('osworld')
    .description("OSWorld's own evaluators.")
    .command('install')
    .description('Install the evaluators that judge what our own getters and metrics do not (0.3 GB, from PyPI).')
    .option('--full', 'also what judges images, audio and PDF files (1.2 GB)', false)
    .option('--json', 'as JSON', false)
    .action(act(async (o: Options) => (await import('./osworld.js')).install(o)));
}

function desktopCommands(program: Command, act: Act): void {
  const desktop = program.command('desktop').description('The desktop image.');
  desktop
    .command('build')
    .description('Build what desktops start from.')
    .option('--image <name>', 'desktop image', DEFAULT_IMAGE)
    .option(...IMAGE_EXTRA)
    .option('--provider <name>', providerWords, 'auto')
    .option('--force', 'build again even if it exists', false)
    .option('--push <ref>', 'push the image to a registry under this reference, for desktops on Kubernetes')
    .action(act(async (o: Options) => (await import('./desktop.js')).build(o)));
  desktop
    .command('export')
    .argument('<file.tar>', 'file to write')
    .description('Write the image to a file, for nodes that no registry reaches.')
    .option('--image <name>', 'desktop image', DEFAULT_IMAGE)
    .option(...IMAGE_EXTRA)
    .action(act(async (file: string, o: Options) => (await import('./desktop.js')).exportFile(file, o)));
  desktop
    .command('status')
    .description('What is built, and which provider would be used.')
    .option('--image <name>', 'desktop image', DEFAULT_IMAGE)
    .option(...IMAGE_EXTRA)
    .option('--json', 'as JSON', false)
    .action(act(async (o: Options) => (await import('./desktop.js')).status(o)));
  withCluster(desktop.command('screenshot'))
    .argument('<file.png>', 'where to write it')
    .description("Start a desktop, run one task's set-up, and save what the policy would see.")
    .option('--task <id>', 'task of the built-in suite, e.g. desk/NAME#1')
    .option('--image <name>', 'desktop image', DEFAULT_IMAGE)
    .option(...IMAGE_EXTRA)
    .option('--provider <name>', providerWords, 'auto')
    .action(act(async (file: string, o: Options) => (await import('./desktop.js')).screenshot(file, o)));
  desktop
    .command('serve')
    .description('Serve desktops to other programs, such as OSWorld, cua or clients of OpenEnv, until Ctrl-C.')
    .option('--osworld', "speak the API of OSWorld's virtual machines, each desktop at its own port", false)
    .option('--openenv', 'speak OpenEnv: tasks to reset to, steps, and a reward at the end', false)
    .option('--count <n>', 'desktops; sessions at once', '1')
    .option('--port <n>', 'port (8000), or that of the first machine (5000)')
    .option('--host <address>', 'address to listen at; any but 127.0.0.1 needs a token')
    .option(
      '--token-file <file>',
      'file with the token that clients send as Authorization: Bearer TOKEN; without it DART_STUDIO_SERVE_TOKEN of the environment holds it',
    )
    .option('--token <token>', 'the token itself: every user of this machine can see it in the list of processes')
    .option('--image <name>', 'desktop image')
    .option(...IMAGE_EXTRA)
    .option('--provider <name>', providerWords, 'auto')
    .option('--screen <size>', 'size of the screen, e.g. 1920x1080')
    .option('--accessibility', 'with an accessibility tree, which makes resets slower (--osworld)', false)
    .option('--tasks <dir or suite>', 'with --openenv: OSWorld task files, a copy of MiniWoB++, or desk', 'desk')
    .option('--families <names>', 'with --openenv: only these, with commas')
    .option('--assets <dir>', 'what `tasks fetch` mirrored; with --osworld for `/setup/download_file`')
    .option('--split <name>', 'with --openenv: tasks that resets draw from, as in `evaluate`', 'train')
    .option('--max-steps <n>', 'with --openenv: max steps of an episode')
    .option('--no-picture', 'with --openenv: observations without a picture, unless a reset asks for one')
    .action(act(async (o: Options) => (await import('./desktopServe.js')).serve(o)));
}

function kubernetesCommands(program: Command, act: Act): void {
  const kubernetes = program.command('kubernetes').description('Desktops on Kubernetes.');
  kubernetes
    .command('image')
    .description('Build the image of the runtime, for the Job that trains in the cluster, from this installation.')
    .option('--push <ref>', 'push it to a registry under this reference')
    .option('--export <file.tar>', 'write it to a file, for nodes that no registry reaches')
    .option('--base <image>', 'image with Node.js 20 or newer that it is made from; default: node:20-bookworm-slim')
    .action(act(async (o: Options) => (await import('./kubernetes.js')).buildImage(o)));
  kubernetes
    .command('manifests')
    .description('Print what a cluster needs, for `kubectl apply -f -`: namespace, rights, network policy, quota.')
    .option('--run <run.json>', 'run file: namespace and number of desktops are its')
    .option('--namespace <name>', 'namespace of the desktops')
    .option('--desktops <n>', 'desktops that the quota allows')
    .option(
      '--job <image>',
      'also a Job that trains in the cluster: image of the runtime (`kubernetes image`), with the run file',
    )
    .action(act(async (o: Options) => (await import('./kubernetes.js')).printManifests(o)));
}

function runCommands(program: Command, act: Act): void {
  const runs = program
    .command('runs')
    .description('Recorded runs.')
    .option('--runs <dir>', 'folder of run folders', 'runs');
  const dirOf = (): string => String(runs.opts()['runs']);
  runs
    .command('list')
    .description('All runs, newest first.')
    .option('--json', 'as JSON', false)
    .action(act(async (o: Options) => (await import('./runs.js')).list(dirOf(), o)));
  runs
    .command('show')
    .argument('<run>', 'run id or folder')
    .description('Ledger, success and curation of one run.')
    .option('--json', 'as JSON', false)
    .action(act(async (run: string, o: Options) => (await import('./runs.js')).show(dirOf(), run, o)));
  runs
    .command('export')
    .argument('<run>', 'run id or folder')
    .argument('<file>', 'file: .csv, .json or .parquet; with --what tensorboard a folder')
    .description("Export a run's metrics or rollouts, or its metrics for TensorBoard.")
    .option('--what <kind>', 'metrics, rollouts or tensorboard', 'metrics')
    .action(
      act(async (run: string, file: string, o: Options) =>
        (await import('./runs.js')).exportRun(dirOf(), run, file, String(o['what'])),
      ),
    );
  runs
    .command('gc')
    .argument('[run]', 'run id or folder; default: all runs')
    .description('Remove screens that the rules of a run (store.keep) no longer keep. Figures and records stay.')
    .option('--retired-hours <n>', 'instead of the rule of the run: screens of retired rollouts')
    .option('--failure-hours <n>', 'the same for failures')
    .option('--success-hours <n>', 'the same for successes')
    .option('--gigabytes <n>', 'the same for all screens together')
    .option('--dry-run', 'only report what would be removed', false)
    .option('--json', 'as JSON', false)
    .action(act(async (run: string | undefined, o: Options) => (await import('./gc.js')).gc(dirOf(), run, o)));
}

function engineCommands(program: Command, act: Act): void {
  const engine = program.command('engine').description('Engines that train vision-language models.');
  engine
    .command('serve')
    .description('Run the single-GPU engine on this machine; the first start installs what it needs (5 GB).')
    .requiredOption('--model <folder or id>', 'model to train')
    .option('--state <folder>', 'folder of checkpoints and adapters; the engine continues from it')
    .option('--json', 'address as JSON', false)
    .argument(
      '[engine-options...]',
      "options of the engine itself, such as --lora 16 --port 8377 (--help and the engine's page list them)",
    )
    .allowUnknownOption()
    .addHelpText('after', serveFlagsHelp)
    .action(act(async (rest: string[], o: Options) => (await import('./engineServe.js')).serve(rest, o)));
  engine
    .command('probe')
    .argument('<url>', 'address of a Tinker-protocol server')
    .description(
      'Measure what a training server does with gradients, images and steps, and report whether a run can trust it.',
    )
    .option('--model <name>', 'model to train; default: the first the server names')
    .option('--rank <n>', 'rank of the adapter; 0 = all weights', '16')
    .option('--key-env <name>', 'environment variable that holds its key')
    .option('--no-images', 'for a model that takes text alone')
    .option('--sampling', 'rollouts are sampled by this server', false)
    .option('--json', 'as JSON', false)
    .action(act(async (url: string, o: Options) => (await import('./engine.js')).probe(url, o)));
}

function machineCommands(program: Command, act: Act, daemon: DaemonCommands): void {
  withAlerts(program.command('serve'))
    .argument('<storage>', "folder for the daemon's record, lock and log")
    .description('Run the daemon that VS Code windows share.')
    .option('--idle-minutes <n>', 'end after this many minutes with no window and no run')
    .action(
      act(async (storage: string, o: Options) =>
        daemon.serve(storage, {
          idleMinutes: textOption(o, 'idleMinutes'),
          alerts: alertTargets(o, process.env, 'as it is'),
        }),
      ),
    );
  withCluster(program.command('doctor'))
    .description('Check this machine, or all that a run file needs.')
    .option(
      '--run <run.json>',
      'check the servers, folders and disk of this run file too, and say what an update costs',
    )
    .option('--json', 'as JSON', false)
    .action(act(async (o: Options) => (await import('./doctor.js')).doctor(o)));
  program
    .command('schema')
    .description('Print the JSON schema of the run file.')
    .action(
      act(async () => {
        printJson((await import('../run/backends/schema.js')).jsonSchema());
      }),
    );
}

/**
 * Exit codes: 0 done, 1 failed, 2 the command was wrong, 3 the daemon runs already, 130 interrupted. `daemon` is handed
 * in: this room does not know the server.
 */
export async function main(argv: string[], daemon: DaemonCommands): Promise<number> {
  let code = 0;
  const output = watchOutput();
  const program = createProgram(daemon, (c) => {
    code = c;
  });
  try {
    await program.parseAsync(argv, { from: 'user' });
    return output.failed ? 1 : code;
  } catch (e) {
    if (e instanceof CommanderError) return e.exitCode === 0 ? 0 : 2;
    const err = endOf(e);
    tell(asCalled(`\n${err.message}\n${err.remedy}\n`));
    if (err.kind === 'internal' && typeof err.details?.['stack'] === 'string') tell(`${err.details['stack']}\n`);
    return err.kind === 'config.invalid' ? 2 : err.kind === 'cancelled' ? 130 : 1;
  }
}
