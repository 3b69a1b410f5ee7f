import { appendFile, cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { AgentClient } from '../../runtime/cluster/agentClient.js';
import { parseRunText } from '../../runtime/config/index.js';
import type { JournalEvent } from '../../runtime/data/events.js';
import { RunReader, RunStore } from '../../runtime/data/store/runStore.js';
import { encodeRecord } from '../../runtime/data/store/record.js';
import { decodePng } from '../../runtime/data/store/png.js';
import { crc32 } from '../../runtime/files/crc32.js';
import { id, type Random, type RolloutId } from '../../runtime/domain/index.js';
import { exportRun } from '../../runtime/interchange/exporter.js';
import { preview } from '../../runtime/interchange/importer.js';
import { JpegDecoder } from '../../runtime/interchange/jpegDecoder.js';
import { checkPicture, decodePicture, pictureSize } from '../../runtime/interchange/picture.js';
import { writeTensors } from '../../runtime/interchange/torchFile.js';
import { ChatSession } from '../../runtime/policy/remote/chatSession.js';
import { completionOf, saidIn } from '../../runtime/policy/remote/completion.js';
import { lanes } from '../../runtime/queries/lanes.js';
import { recordedView } from '../../runtime/service/recordedView.js';
import { noAssets } from '../../runtime/tasks/assets.js';
import { needsOf } from '../../runtime/tasks/needs.js';
import { parseTask, readJson } from '../../runtime/tasks/taskFile.js';
import { jpegs } from '../fixtures/interchange/jpegs.js';
import { bundle } from '../helpers/data/manager.js';
import {
  agentnetFile,
  dartRollout,
  makeRun,
  osworldTask,
  png,
  screen,
  success,
  uiTarsFile,
} from '../helpers/interchange/make.js';
import { desk } from '../helpers/tasks/images.js';
import { besides, checkpoints } from './besides.js';
import { changedCopy, Folder } from './folder.js';
import type { Case, Target } from './fuzz.js';
import { mutatedBytes, mutatedJson, mutatedValue } from './mutate.js';

/** What the runtime reads of others, each with a good example that is changed. */

const text = (input: string, run: (input: string) => unknown): Case => ({
  input,
  run: () => Promise.resolve(run(input)),
});

export function runFiles(): Target {
  const good = [
    JSON.stringify({ preset: 'quickstart', seed: 3, desktops: { count: 2 } }),
    JSON.stringify({ policy: { kind: 'openai', openai: { baseUrls: ['http://127.0.0.1:1/v1'], model: 'm' } } }),
    JSON.stringify(parseRunText('{}', 'x')),
  ];
  return { name: 'run files', make: (r) => text(mutatedJson(r, r.pick(good)), (t) => parseRunText(t, 'run.json')) };
}

export function taskFiles(): Target {
  const folder = new Folder();
  let good: string[] = [];
  return {
    name: 'task files',
    async open() {
      await folder.open();
      const lines = (await readFile('test/fixtures/osworld/tasks.jsonl', 'utf8')).trim().split('\n');
      good = lines.map((l) => JSON.stringify((JSON.parse(l) as { task: unknown }).task));
    },
    async make(r) {
      const input = mutatedJson(r, r.pick(good)),
        file = join(folder.path, 'task.json');
      await writeFile(file, input);
      return {
        input,
        run: async () => needsOf(parseTask(await readJson(file), file), noAssets, desk),
      };
    },
    close: () => folder.close(),
  };
}

/** A folder with one trajectory, by format; each as its own program writes it. */
async function sources(dir: string): Promise<string[]> {
  const at = (name: string): string => join(dir, name);
  await osworldTask(at('osworld'), 'os', 'task', [{ action: 'pyautogui.click(10, 20)' }, { action: 'DONE' }], {
    initial: true,
  });
  await agentnetFile(at('agentnet'), [
    { task_id: 't', codes: ['pyautogui.click(x=0.5, y=0.5)', "computer.terminate(status='success')"] },
  ]);
  await dartRollout(at('dart'), ["Thought: a\nAction: click(start_box='(10,20)')", 'Thought: b\nAction: finished()']);
  await writeFile(
    join(at('dart'), 'data_for_step_1.pt'),
    writeTensors({ logp: Float32Array.of(-1, -2), token_ids: Int32Array.of(1, 2) }),
  );
  await uiTarsFile(join(at('ui-tars'), 'a.json'), [
    { value: "Thought: a\nAction: click(start_box='(500,500)')", box: [0.5, 0.5, 0.5, 0.5] },
    { value: 'Thought: b\nAction: finished()' },
  ]);
  await makeRun(at('run'), [plan]);
  await exportRun(
    { run: at('run'), to: at('traj'), format: 'traj', options: { coordinates: 'absolute' } },
    recordedView,
  );
  return ['osworld', 'agentnet', 'dart', 'ui-tars', 'traj'].map(at);
}
const plan = {
  rollout: 'r1',
  task: 't',
  family: 'f',
  instruction: 'Press it.',
  steps: [
    { screen: 1, thought: 'there', actions: [{ type: 'click', at: { x: 5, y: 6 } }] },
    { screen: 2, actions: [{ type: 'finished' }] },
  ],
  outcome: success,
} as const satisfies Parameters<typeof makeRun>[1][number];

export function imports(): Target {
  const folder = new Folder();
  let good: string[] = [];
  return {
    name: 'imports',
    async open() {
      await folder.open();
      good = await sources(folder.path);
    },
    async make(r) {
      const path = join(folder.path, 'case'),
        input = await changedCopy(r, r.pick(good), path),
        verdict = r.pick(['success', 'failure', undefined] as const);
      return {
        input,
        run: () => preview({ path, format: 'auto', options: verdict ? { verdict } : {} }),
      };
    },
    close: () => folder.close(),
  };
}

export function runFolders(): Target {
  const folder = new Folder();
  return {
    name: 'run folders',
    async open() {
      await folder.open();
      await makeRun(join(folder.path, 'good'), [plan]);
    },
    async make(r) {
      const dir = join(folder.path, 'case'),
        write = r.int(4) === 0,
        input = await changedCopy(r, join(folder.path, 'good'), dir);
      return { input, run: () => (write ? written(dir) : read(dir)) };
    },
    close: () => folder.close(),
  };
}
/** Records whose checksums fit and whose numbers do not: times without end, columns of other lengths, steps of nothing. */
export function journals(): Target {
  const folder = new Folder(),
    wild = [0, 1, -1, 59_999, 60_000, 9e7, 3e10, 8.64e15, 1e16, 1e25, 1e30, Infinity, -Infinity, NaN] as const;
  return {
    name: 'journals',
    async open() {
      await folder.open();
      await makeRun(join(folder.path, 'good'), [plan], undefined, { sync: false });
    },
    make(r) {
      const n = r.int(6),
        odd = r.int(4) === 0 ? r.int(6) : n,
        floats = (length: number): Float32Array => Float32Array.from({ length }, () => r.pick(wild)),
        spans = {
          type: 'spans',
          lane: r.pick(['d1', 'r1', '']),
          kind: r.pick(['desktop', 'replica', 'trainer', 'other']),
          t0: r.pick([Date.UTC(2026, 0, 1), ...wild]),
          what: Uint8Array.from({ length: n }, () => r.int(256)),
          start: floats(n),
          ms: floats(odd),
          of: new Uint8Array(n).fill(255),
          rollouts: [],
        },
        step = {
          type: 'rollout.step',
          rollout: 'r1',
          step: {
            index: r.pick([0, 1, ...wild]),
            frame: { hash: 'a'.repeat(64), width: 1, height: 1 },
            actions: [],
            tokens: { logprobs: floats(n), entropies: floats(odd), ids: Int32Array.from(floats(n)) },
            version: r.pick([1, ...wild]),
            timings: {},
          },
        },
        other = (of: object): object => ({
          ...of,
          [r.pick(Object.keys(of).slice(1))]: r.pick([undefined, null, 'x', -1, [1], { length: 1e9 }]),
        }),
        event = r.pick([
          spans,
          other(spans),
          step,
          { ...step, step: other(step.step) },
          { ...step, step: { ...step.step, tokens: other(step.step.tokens) } },
        ]) as JournalEvent,
        dir = join(folder.path, 'case');
      return {
        input: JSON.stringify(event).slice(0, 2000),
        run: async () => {
          await rm(dir, { recursive: true, force: true });
          await cp(join(folder.path, 'good'), dir, { recursive: true });
          await appendFile(join(dir, 'journal', '00000000.journal'), encodeRecord(1000, { ...event, at: 0 }));
          await read(dir);
        },
      };
    },
    close: () => folder.close(),
  };
}
async function read(dir: string): Promise<void> {
  const run = await RunReader.open(dir, { index: 'local' });
  try {
    for await (const e of run.events()) void e;
    for (const row of await run.index.query('SELECT id FROM rollouts')) {
      const t = await run.readTrajectory(id<RolloutId>(String(row['id'])));
      for (const s of t?.steps ?? []) await run.frames.get(s.frame);
      if (t) await recordedView(run, t.id);
    }
    await lanes(run, { width: 100 });
  } finally {
    await run.close();
  }
}
async function written(dir: string): Promise<void> {
  const run = await RunStore.open(dir, { index: 'local' }, () => undefined);
  try {
    await run.append({ type: 'log', level: 'info', message: 'x' });
    await run.frames.put(screen(1));
  } finally {
    await run.close();
  }
}

/** A checksum that fits again, so that what lies behind it is reached. */
function resealed(b: Buffer): Buffer {
  for (let at = 8; at + 12 <= b.length;) {
    const end = at + 8 + b.readUInt32BE(at);
    if (end + 4 > b.length) break;
    b.writeUInt32BE(crc32(b.subarray(at + 4, end)), end);
    at = end + 4;
  }
  return b;
}
export function pictures(): Target {
  const folder = new Folder();
  let good: Buffer[] = [],
    decoder: JpegDecoder;
  return {
    name: 'pictures',
    async open() {
      await folder.open();
      good = [await png(1), await png(2, 8, 8), ...Object.values(jpegs).map((j) => Buffer.from(j.base64, 'base64'))];
      decoder = new JpegDecoder(await bundle('test/helpers/interchange/jpegWorker.ts', 'fuzz-jpeg'));
    },
    async make(r) {
      const bad = mutatedBytes(r, r.pick(good)),
        bytes = r.int(2) === 0 ? resealed(Buffer.from(bad)) : bad,
        file = join(folder.path, 'picture');
      await writeFile(file, bytes);
      const p = { file, name: 'picture' };
      return {
        input: bytes.toString('base64'),
        run: async () => {
          const own = decodePng(bytes).catch((e: unknown) => e);
          await pictureSize(p);
          await checkPicture(p);
          await decodePicture(p, decoder);
          const e = await own;
          if (e instanceof Error) throw e;
        },
      };
    },
    async close() {
      await decoder.close();
      await folder.close();
    },
  };
}

export function modelReplies(): Target {
  const answers = [
    "Thought: I click.\nAction: click(start_box='(10,20)')",
    "Reflection: no\nAction_Summary: type\nAction: type(content='it\\'s (me), you\\n')\n\nhotkey(key='ctrl c')",
    "Action: drag(start_box='<|box_start|>(1,2)<|box_end|>', end_box='[3, 4, 5, 6]')</s>",
  ];
  const completion = (r: Random): object => {
    const content = r.int(2) === 0 ? mutatedBytes(r, Buffer.from(r.pick(answers))).toString('utf8') : r.pick(answers);
    return {
      model: 'm@v3',
      metadata: { weight_version: 3 },
      choices: [
        {
          message: { role: 'assistant', content },
          logprobs: {
            content: [
              { token: 'A', logprob: -0.5, top_logprobs: [{ token: 'A', logprob: -0.5 }] },
              { token: 'token_id:7', logprob: -1, top_logprobs: [] },
            ],
          },
          token_ids: [1, 2],
          finish_reason: 'stop',
        },
      ],
      prompt_token_ids: [1, 9, 9, 2],
    };
  };
  return {
    name: 'model replies',
    make: (r) =>
      text(
        r.int(4) === 0 ? JSON.stringify(completion(r)) : mutatedJson(r, JSON.stringify(completion(r))),
        async (reply) => {
          const session = new ChatSession(
            { encodePng: () => Promise.resolve(Buffer.from('png')), coordinates: 'qwen25', imageToken: 9 },
            {
              complete: () => {
                const said = saidIn(completionOf(reply, 'http://server'));
                return Promise.resolve({
                  said,
                  version: said.version ?? 0,
                  replica: 'r' as never,
                  queueMs: 0,
                  computeMs: 0,
                });
              },
              end: () => undefined,
            },
            {
              rollout: 'r',
              instruction: 'Do it.',
              screen: { width: 160, height: 100 },
              sampling: { seed: '1', temperature: 1, greedy: false } as never,
            },
          );
          await session.decide(screen(1), new AbortController().signal);
        },
      ),
  };
}

export function agentLines(): Target {
  const good = [
    { id: 1, ok: true, code: 0, stdout: 'YQ==', stderr: '', timedOut: false },
    { id: 1, ok: false, error: 'no', kind: 'x' },
    { event: 'exit', pid: 7, code: 0 },
    { id: 1, ok: true, data: 'YQ==' },
  ];
  return {
    name: 'agent lines',
    make: (r) => {
      const lines = Array.from({ length: 1 + r.int(3) }, () => JSON.stringify(mutatedValue(r, r.pick(good)))).join(
          '\n',
        ),
        input = r.int(3) === 0 ? mutatedBytes(r, Buffer.from(lines)).toString('latin1') : lines;
      return text(input, async () => {
        const stream = new Duplex({ read: () => undefined, write: (_c, _e, done) => done() }),
          agent = new AgentClient(stream),
          asked = agent.exec(['true'], { timeoutMs: 10 });
        stream.push(Buffer.from(`${input}\n`, 'latin1'));
        stream.push(null);
        await asked.finally(() => agent.close());
      });
    },
  };
}

export const inProcess = (): Target[] => [
  runFiles(),
  taskFiles(),
  imports(),
  runFolders(),
  journals(),
  pictures(),
  besides(),
  checkpoints(),
  modelReplies(),
  agentLines(),
];
