/**
 * Writers of small runs and of foreign trajectory folders, as their own programs would have written them
 * (runtime/interchange/README.md#formats).
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { id, random } from '../../../runtime/domain/index.js';
import type {
  Action,
  FamilyId,
  Frame,
  FrameRef,
  Outcome,
  RolloutId,
  RunId,
  Step,
  TaskId,
  TokenTrace,
  Trajectory,
} from '../../../runtime/domain/index.js';
import { headOf } from '../../../runtime/data/events.js';
import type { FrameStoreOptions } from '../../../runtime/data/store/frames.js';
import { pngOf } from '../../../runtime/data/store/png.js';
import { remoteEpisode, type RemoteTurn } from '../policy/remoteEpisode.js';
import { RunReader, RunStore } from '../../../runtime/data/store/runStore.js';

export async function inFolder<T>(f: (dir: string) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'dart-interchange-'));
  try {
    return await f(dir);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** A screen of coloured rectangles; the same seed gives the same pixels. */
export function screen(seed: number, width = 160, height = 100): Frame {
  const r = random(`screen/${seed}`),
    data = Buffer.alloc(width * height * 4, 0);
  for (let k = 0; k < 6; k++) {
    const [x0, y0, w, h, b, g, c] = [
      r.int(width),
      r.int(height),
      1 + r.int(width / 2),
      1 + r.int(height / 2),
      r.int(256),
      r.int(256),
      r.int(256),
    ];
    for (let y = y0; y < Math.min(height, y0 + h); y++)
      for (let x = x0; x < Math.min(width, x0 + w); x++) {
        const i = (y * width + x) * 4;
        data[i] = b;
        data[i + 1] = g;
        data[i + 2] = c;
      }
  }
  return { width, height, data, capturedAt: 0 };
}
export const png = (seed: number, width?: number, height?: number): Promise<Buffer> =>
  pngOf(screen(seed, width, height));

/** A trajectory with screens still to be made; `screens[i]` is the seed of step i's, `last` that of the one after. */
export interface Plan {
  readonly rollout?: string;
  readonly task: string;
  readonly family: string;
  readonly instruction: string;
  readonly steps: readonly {
    readonly screen: number;
    readonly actions: readonly Action[];
    readonly thought?: string;
    readonly origin?: Step['origin'];
    readonly tokens?: TokenTrace;
  }[];
  readonly outcome: Outcome;
  readonly last?: number;
  readonly cap?: number;
  /** Default: a person's. */
  readonly provenance?: Trajectory['provenance'];
}
export const success: Outcome = { kind: 'success', reward: 1, truncated: false };
export const failure: Outcome = { kind: 'failure', reward: 0, truncated: true };
/** A trajectory of one step on one screen. */
export const onePress = {
  rollout: 'r1',
  task: 't',
  family: 'f',
  instruction: 'Press it.',
  steps: [{ screen: 1, actions: [{ type: 'finished' }] }],
  outcome: success,
} as const;

/** A run folder holding these trajectories, as rollouts of demonstrations (no ledger is needed). */
export async function makeRun(
  dir: string,
  plans: readonly Plan[],
  size: { width: number; height: number } = { width: 160, height: 100 },
  frames: FrameStoreOptions = { sync: false },
): Promise<Trajectory[]> {
  const store = await RunStore.open(dir, {
    index: 'local',
    frames,
    create: { id: id<RunId>('fixture run'), createdAt: 1 },
  });
  const out: Trajectory[] = [],
    refs = new Map<number, FrameRef>();
  const put = async (seed: number): Promise<FrameRef> => {
    const ref = refs.get(seed) ?? (await store.frames.put(screen(seed, size.width, size.height)));
    refs.set(seed, ref);
    return ref;
  };
  try {
    for (const [n, p] of plans.entries()) {
      const steps: Step[] = [];
      for (const [index, s] of p.steps.entries())
        steps.push({
          index,
          frame: await put(s.screen),
          actions: s.actions,
          origin: s.origin ?? 'human',
          settled: true,
          timings: { observe: 1, decide: 2, queue: 0, perform: 3, settle: 4 },
          ...(s.thought ? { thought: s.thought } : {}),
          ...(s.tokens ? { tokens: s.tokens } : {}),
        });
      const t: Trajectory = {
        id: id<RolloutId>(p.rollout ?? `demo/${n}`),
        task: id<TaskId>(p.task),
        family: id<FamilyId>(p.family),
        instruction: p.instruction,
        provenance: p.provenance ?? { kind: 'human' },
        steps,
        outcome: p.outcome,
        cap: p.cap ?? 30,
        startedAt: 1_700_000_000_000 + n,
        endedAt: 1_700_000_060_000 + n,
        resetMs: 5,
        verifyMs: 6,
        ...(p.last === undefined ? {} : { last: await put(p.last) }),
      };
      await Promise.all(
        [
          ...steps.map((step) => ({ type: 'rollout.step', rollout: t.id, step }) as const),
          { type: 'trajectory.recorded', head: headOf(t) } as const,
        ].map((e) => store.append(e)),
      );
      out.push(t);
    }
  } finally {
    await store.close();
  }
  return out;
}

/** A run folder with one rollout of a vision-language model; turn i is on the screen of seed `turns[i].screen`. */
export async function makeRemoteRun(
  dir: string,
  turns: readonly (Omit<RemoteTurn, 'frame'> & { readonly screen: number })[],
): Promise<Trajectory> {
  const store = await RunStore.open(dir, {
    index: 'local',
    frames: { sync: false },
    create: { id: id<RunId>('remote run'), createdAt: 1 },
  });
  try {
    const shown: RemoteTurn[] = [];
    for (const { screen: seed, ...turn } of turns) shown.push({ ...turn, frame: await store.frames.put(screen(seed)) });
    const { steps, extras } = remoteEpisode(shown, { images: 3, version: 4 });
    const t: Trajectory = {
      id: id<RolloutId>('rollout/1'),
      task: id<TaskId>('desk/notes#3'),
      family: id<FamilyId>('desk/notes'),
      instruction: 'Write a note',
      provenance: { kind: 'human' },
      steps,
      outcome: success,
      cap: 30,
      startedAt: 1_700_000_000_000,
      endedAt: 1_700_000_060_000,
      resetMs: 5,
      verifyMs: 6,
    };
    await Promise.all(
      [
        ...steps.map((step, i) => ({ type: 'rollout.step', rollout: t.id, step, extra: extras[i]! }) as const),
        { type: 'trajectory.recorded', head: headOf(t) } as const,
      ].map((e) => store.append(e)),
    );
    return t;
  } finally {
    await store.close();
  }
}

/** All imported trajectories of a run, oldest first. */
export async function importedOf(dir: string): Promise<Trajectory[]> {
  const run = await RunReader.open(dir, { index: 'local' });
  try {
    const rows = await run.index.query("SELECT id FROM rollouts WHERE provenance = 'imported' ORDER BY born", []);
    const out: Trajectory[] = [];
    for (const r of rows) out.push((await run.readTrajectory(id<RolloutId>(String(r['id']))))!);
    return out;
  } finally {
    await run.close();
  }
}
export async function poolOf(dir: string): Promise<string[]> {
  const run = await RunReader.open(dir, { index: 'local' }),
    out: string[] = [];
  try {
    for await (const e of run.events()) if (e.type === 'pool.added') out.push(e.entry.id);
    return out;
  } finally {
    await run.close();
  }
}

export async function put(path: string, content: string | Buffer): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, content);
}
const jsonl = (rows: readonly unknown[]): string => rows.map((r) => `${JSON.stringify(r)}\n`).join('');

export interface OsworldRow {
  readonly action: unknown;
  readonly response?: string;
  readonly step_num?: number;
  readonly [k: string]: unknown;
}
/** One task folder of OSWorld's runner: the screenshot of line n is the screen after action n, made from seed 100 + n. `initial`: step_0.png too. */
export async function osworldTask(
  results: string,
  domain: string,
  task: string,
  rows: readonly OsworldRow[],
  o: { readonly result?: string; readonly initial?: boolean; readonly size?: readonly [number, number] } = {},
): Promise<string> {
  const dir = join(results, 'pyautogui', 'screenshot', 'agent', domain, task);
  const out: unknown[] = [];
  for (const [i, row] of rows.entries()) {
    const name = `step_${i + 1}_20250713@1612${String(i % 60).padStart(2, '0')}000000.png`;
    await put(join(dir, name), await png(100 + i + 1, ...(o.size ?? [])));
    out.push({
      step_num: i + 1,
      action_timestamp: `20250713@1612${String(i % 60).padStart(2, '0')}000000`,
      reward: 0,
      done: false,
      info: {},
      screenshot_file: name,
      ...row,
    });
  }
  if (o.initial) await put(join(dir, 'step_0.png'), await png(100, ...(o.size ?? [])));
  await put(join(dir, 'traj.jsonl'), jsonl(out));
  if (o.result !== '') await put(join(dir, 'result.txt'), o.result ?? '1.0\n');
  return dir;
}

/** AgentNet's JSONL with images beside it, the screen of step i from seed 200 + i. */
export async function agentnetFile(
  dir: string,
  rows: readonly {
    readonly task_id: string;
    readonly instruction?: string;
    readonly codes: readonly string[];
    readonly task_completed?: unknown;
    readonly image?: (i: number) => string;
  }[],
  images = 'images',
): Promise<string> {
  const out: unknown[] = [];
  for (const [n, row] of rows.entries()) {
    const traj: unknown[] = [];
    for (const [i, code] of row.codes.entries()) {
      const image = row.image?.(i) ?? `${row.task_id}-${i}.png`;
      if (!row.image) await put(join(dir, images, image), await png(200 + 10 * n + i));
      traj.push({
        index: i,
        image,
        value: {
          code,
          observation: 'a desktop',
          thought: `thinking ${i}`,
          action: 'does it',
          last_step_correct: true,
          last_step_redundant: false,
          reflection: 'fine',
        },
      });
    }
    out.push({
      task_id: row.task_id,
      instruction: row.instruction ?? `do ${row.task_id}`,
      task_completed: row.task_completed ?? true,
      alignment_score: 9,
      efficiency_score: 8,
      task_difficulty: 3,
      traj,
    });
  }
  const file = join(dir, 'agentnet_ubuntu_5k.jsonl');
  await put(file, jsonl(out));
  return file;
}

/** A rollout folder of DART's rollouter. Answers are in coordinates of the image after smart_resize. */
export async function dartRollout(
  dir: string,
  answers: readonly string[],
  o: {
    readonly reward?: string;
    readonly task?: unknown;
    readonly url?: (k: number) => unknown;
    readonly size?: readonly [number, number];
    readonly trailing?: boolean;
  } = {},
): Promise<string> {
  const messages: unknown[] = [
    { role: 'system', content: 'You are a helpful assistant.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'You are a GUI agent. …' },
        { type: 'image_url', image_url: o.url?.(0) ?? 'image_0000.png' },
      ],
    },
  ];
  for (const [k, a] of answers.entries()) {
    await put(join(dir, `image_${String(k).padStart(4, '0')}.png`), await png(300 + k, ...(o.size ?? [280, 140])));
    if (k > 0)
      messages.push({
        role: 'user',
        content: [{ type: 'image_url', image_url: o.url?.(k) ?? `image_${String(k).padStart(4, '0')}.png` }],
      });
    messages.push({ role: 'assistant', content: a });
  }
  if (o.trailing)
    await put(
      join(dir, `image_${String(answers.length).padStart(4, '0')}.png`),
      await png(300 + answers.length, ...(o.size ?? [280, 140])),
    );
  await put(join(dir, 'final_messages.json'), JSON.stringify(messages, null, 2));
  await put(
    join(dir, 'task_config.json'),
    JSON.stringify(o.task ?? { instruction: 'Open the note.', raw: { task_type: 'os', task_id: 'task-7' } }),
  );
  await put(join(dir, 'reward.txt'), o.reward ?? '1.0');
  // Beside it lie files that are no trajectories.
  await put(join(dir, 'msg_for_prompt_1.json'), '[]');
  return dir;
}

/** A recording of UI-TARS-desktop; `parsed` as its own parser would note it (shares of the screen). */
export async function uiTarsFile(
  file: string,
  turns: readonly {
    readonly value: string;
    readonly box?: readonly [number, number, number, number];
    readonly type?: string;
    readonly timing?: unknown;
  }[],
  o: {
    readonly modelName?: string;
    readonly size?: readonly [number, number];
    readonly mime?: string;
    readonly picture?: (k: number) => Promise<Buffer>;
  } = {},
): Promise<string> {
  const conversations: unknown[] = [{ from: 'human', value: 'Open the settings' }];
  for (const [k, t] of turns.entries()) {
    const shot = await (o.picture?.(k) ?? png(400 + k, ...(o.size ?? [280, 140])));
    conversations.push({
      from: 'human',
      value: '<image>',
      screenshotBase64: shot.toString('base64'),
      screenshotContext: { size: { width: 280, height: 140 }, mime: o.mime ?? 'image/png', scaleFactor: 1 },
    });
    conversations.push({
      from: 'gpt',
      value: t.value,
      timing: t.timing ?? { start: 1, end: 2, cost: 1 },
      ...(t.box
        ? {
            predictionParsed: [
              {
                action_type: t.type ?? 'click',
                action_inputs: { start_box: JSON.stringify(t.box) },
                thought: 'x',
                reflection: '',
              },
            ],
          }
        : {}),
    });
  }
  await put(
    file,
    JSON.stringify({
      version: 'v1',
      instruction: 'Open the settings',
      systemPrompt: 'You are a GUI agent.',
      modelName: o.modelName ?? 'some-model',
      mode: 'Computer Use',
      logTime: 1_720_000_000_000,
      status: 'end',
      conversations,
    }),
  );
  return file;
}
