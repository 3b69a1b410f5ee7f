/**
 * `--preset`: preset `osworld` with the tiny model of bench:vlm, from end to end as a user would run it. A scripted model
 * is measured on task files (`evaluate --policy`), its results are imported, a run trains on the same tasks with that
 * pool, is killed and resumed. It is not asked to learn.
 */
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readFolder } from '../../../runtime/tasks/check.js';
import type { Task } from '../../../runtime/tasks/types.js';
import type { Evaluators } from '../../../runtime/tasks/bridge/evaluators.js';
import type { RunFile } from '../../../runtime/config/index.js';
import { cli, cliJson, endAll, folderOf, journalWhen, replay, start, type Replay } from '../../helpers/run/cli.js';
import { bar, type Bar } from '../lib/report.js';
import { environment, startEngine, tinyModel } from '../vlm/servers.js';
import { allImages } from './world.js';

const TERMINAL = "Action: hotkey(key='ctrl alt t')",
  WAIT = 'Action: wait()',
  DONE = "Action: finished(content='')",
  CANNOT = 'Action: call_user()';
/** Types a line into a terminal. No commas: the tiny model has each answer as one token. */
const shell = (line: string): readonly string[] => [
  TERMINAL,
  WAIT,
  `Action: type(content='${line}; exit\\n')`,
  WAIT,
  DONE,
];
/** What solves a task, by the beginning of its id; none of them downloads anything. */
const SCRIPTS: Readonly<Record<string, readonly string[]>> = {
  e0df059f: shell('mv ~/Desktop/todo_list_Jan_1 ~/Desktop/todo_list_Jan_2'),
  f9be0997: shell('gsettings set org.gnome.desktop.notifications show-banners false'),
  bedcedc4: shell('gsettings set org.gnome.desktop.session idle-delay 0'),
  '3ce045a0': shell('gsettings set org.gnome.desktop.interface text-scaling-factor 1.5'),
  '8ba5ae7a': shell('echo input-record-path=/home/user/Desktop >> ~/.config/vlc/vlcrc'),
  '9195653c': shell('echo qt-max-volume=200 >> ~/.config/vlc/vlcrc'),
  f3977615: shell('echo one-instance-when-started-from-file=0 >> ~/.config/vlc/vlcrc'),
  d52d6308: ["Action: click(start_box='(369,463)')", WAIT, "Action: hotkey(key='tab')", WAIT, DONE],
  // These cannot be done, and saying so is right.
  cb130f0d: [CANNOT],
  a462a795: [CANNOT],
};
const WORDS = [...new Set(Object.values(SCRIPTS).flat())];

export interface PresetResult {
  readonly rows: readonly Record<string, unknown>[];
  readonly bars: readonly Bar[];
}

export async function presetCloses(
  examples: string,
  evaluators: Evaluators,
  say: (line: string) => void,
): Promise<PresetResult> {
  const dir = await mkdtemp(join(tmpdir(), 'dart-preset-'));
  try {
    const tasks = await chosen(examples, join(dir, 'tasks'), evaluators);
    const scripted = await scriptedModel(tasks),
      out = join(dir, 'results');
    const measured = await cliJson<Measured>(
      ...[
        'evaluate',
        '--policy',
        scripted.url,
        '--coordinates',
        'relative1000',
        '--tasks',
        join(dir, 'tasks'),
        '--out',
        out,
      ],
      ...['--image', 'osworld', '--provider', 'local', '--desktops', '2', '--max-steps', '8', '--json'],
    ).finally(() => scripted.stop());
    say(`scripted model: ${measured.successes} of ${measured.episodes}, infeasible ${measured.infeasible.successes}`);
    const runs = join(dir, 'runs'),
      imported = await cliJson<{ readonly imported: number }>(
        ...['import', out, '--new', 'scripted', '--tasks', join(dir, 'tasks'), '--runs', runs, '--json'],
      );
    return await trained({ dir, runs, tasks, measured, imported: imported.imported, say });
  } finally {
    await endAll();
    await rm(dir, { recursive: true, force: true });
  }
}

interface Measured {
  readonly episodes: number;
  readonly successes: number;
  readonly infeasible: { readonly episodes: number; readonly successes: number };
}

/** Copies the chosen task files, each in the folder of its domain, as OSWorld lays them. */
async function chosen(examples: string, into: string, evaluators: Evaluators): Promise<Task[]> {
  const image = (await allImages())['osworld']!,
    wanted = Object.keys(SCRIPTS),
    found = (await readFolder(examples, { image, evaluators })).filter((t) =>
      wanted.some((id) => t.task?.id.startsWith(id)),
    );
  if (found.length !== wanted.length) throw new Error(`${found.length} of ${wanted.length} task files are there`);
  for (const { task, file } of found) {
    await mkdir(join(into, task!.domain ?? 'tasks'), { recursive: true });
    await cp(file, join(into, task!.domain ?? 'tasks', `${task!.id}.json`));
  }
  return found.map((t) => t.task!);
}

/** Answers as the scripts say: by the instruction, and by how often it has answered. */
async function scriptedModel(tasks: readonly Task[]): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (d: Buffer) => parts.push(d));
    request.on('end', () => {
      const text = Buffer.concat(parts).toString('utf8'),
        { messages = [] } = (text === '' ? {} : JSON.parse(text)) as {
          readonly messages?: readonly { role: string }[];
        },
        task = tasks.find((t) => text.includes(JSON.stringify(t.instruction).slice(1, -1))),
        answers = task ? answersOf(task.id) : [],
        content = answers[messages.filter((m) => m.role === 'assistant').length] ?? DONE;
      response.setHeader('content-type', 'application/json');
      response.end(
        JSON.stringify(
          request.method === 'GET'
            ? { data: [{ id: 'scripted' }] }
            : { model: 'scripted', choices: [{ index: 0, message: { role: 'assistant', content } }] },
        ),
      );
    });
  });
  await new Promise<void>((done, failed) => server.once('error', failed).listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    stop: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}
const answersOf = (id: string): readonly string[] => Object.entries(SCRIPTS).find(([k]) => id.startsWith(k))?.[1] ?? [];

interface Trained {
  readonly dir: string;
  readonly runs: string;
  readonly tasks: readonly Task[];
  readonly measured: Measured;
  readonly imported: number;
  readonly say: (line: string) => void;
}
/** Trains, is killed after two updates, and is resumed to its end. */
async function trained(t: Trained): Promise<PresetResult> {
  const python = await environment(),
    model = tinyModel(python, join(t.dir, 'model'), WORDS),
    engine = await startEngine(python, { model, state: join(t.dir, 'engine'), port: 0 });
  try {
    const file: RunFile = {
      preset: 'osworld',
      name: 'preset-osworld',
      seed: 1,
      tasks: { dir: join(t.dir, 'tasks') },
      desktops: { count: 2, provider: 'local' },
      policy: {
        vlm: {
          model: engine.model,
          endpoints: [`${engine.url}/v1`],
          coordinates: 'relative1000',
          imageToken: engine.imageToken,
          maxTokens: 4,
          images: 1,
          prompt: '{instruction}',
        },
      },
      rollout: { maxSteps: 6 },
      warmStart: { steps: 60, lr: 1e-3 },
      curation: { pool: { from: ['scripted'] } },
      trainer: { remote: { url: engine.url, rank: 0 }, lr: 2e-4 },
      evaluation: { episodes: t.tasks.length },
      budget: { rollouts: 160 },
    };
    await writeFile(join(t.dir, 'run.json'), JSON.stringify(file));
    const first = start('train', join(t.dir, 'run.json'), '--json', '--runs', t.runs),
      run = await folderOf(first);
    await journalWhen(run, first, (r) => r.of('batch.trained').length >= 2);
    first.signal('SIGKILL');
    await first.ended;
    const again = await cli('train', '--resume', run, '--json', '--runs', t.runs);
    if (again.code !== 0) throw new Error(`the resumed run: exit code ${again.code}\n${again.stderr}`);
    const shown = await cli('runs', 'show', run, '--runs', t.runs);
    t.say(shown.stdout);
    return result(await replay(run), t);
  } finally {
    await engine.stop();
  }
}

function result(r: Replay, { measured, imported }: Trained): PresetResult {
  const versions = r.of('batch.trained').map((e) => e.version),
    own = r.of('trajectory.recorded').filter((e) => e.head.provenance.kind === 'rollout'),
    errors = own.filter((e) => e.head.outcome.kind === 'error').length,
    injected = r.of('group.formed').flatMap((e) => e.members.filter((m) => m.injected)).length,
    evaluations = r.of('eval').map(({ version, episodes, successes, infeasible }) => ({
      version,
      episodes,
      successes,
      infeasible,
    })),
    { queued = 0, running = 0, claimed = 0, trained = 0 } = r.counts.byState as Readonly<Record<string, number>>;
  const skips = versions.filter((v, i) => i > 0 && v !== versions[i - 1]! + 1).length;
  return {
    rows: [
      { section: 'scripted model', ...measured, imported },
      {
        section: 'preset osworld',
        rollouts: own.length,
        successes: own.filter((e) => e.head.outcome.kind === 'success').length,
        errors,
        trained,
        injected,
        versions: versions.length,
        lastVersion: versions.at(-1),
        resumed: r.of('run.opened').filter((e) => e.resumed).length,
        evaluations,
      },
    ],
    bars: [
      bar('preset_scripted_success', measured.successes / measured.episodes, `of ${measured.episodes} tasks`, '>= 1'),
      bar('preset_versions', versions.length, 'updates', '>= 4'),
      bar('preset_pool_injections', injected, 'groups', '>= 1'),
      bar('preset_resumed', r.of('run.opened').filter((e) => e.resumed).length, 'times', '>= 1'),
      bar('preset_left_open', queued + running + claimed, 'rollouts', '<= 0'),
      bar('preset_versions_skipped_or_twice', skips, 'versions', '<= 0'),
      bar('preset_damage', r.damage, 'stretches of the journal', '<= 0'),
      bar('preset_error_share', errors / own.length, 'of rollouts', '<= 0.05'),
    ],
  };
}
