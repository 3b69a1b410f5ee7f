import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RunFile } from '../../../runtime/config/index.js';
import { checkpointOf } from '../../../runtime/data/events.js';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import { sequencesOf } from '../../../runtime/domain/index.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { servedPolicy } from '../../helpers/engine/servedPolicy.js';
import { ReferenceServer } from '../../helpers/engine/server.js';
import { readProtoRequest } from '../../helpers/engine/serverWire.js';
import {
  endAll,
  ensureBundle,
  folderOf,
  journalWhen,
  replay,
  start,
  tryInTerminal,
  type Replay,
} from '../../helpers/run/cli.js';

/**
 * A vision-language model trained through the whole stack, as a user starts it: the bundle in a process of its own, real
 * desktops, and a small server that keeps to the protocols of engines exactly (test/helpers/engine).
 */
const noLocal = await whyNoLocalDesktops();
if (noLocal) console.warn(`skipped: vision-language models on local desktops (${noLocal})`);

let dir: string, runs: string;
const servers: ReferenceServer[] = [];
beforeAll(async () => {
  ensureBundle();
  dir = await mkdtemp(join(tmpdir(), 'dart-vlm-'));
  runs = join(dir, 'runs');
});
afterEach(async () => {
  await endAll();
  for (const s of servers.splice(0)) s.close();
});
afterAll(() => rm(dir, { recursive: true, force: true }));

/** What the model can say in one token; a babbled byte is no action. */
const WORDS = [
  "Action: click(start_box='(500,500)')",
  "Action: click(start_box='(300,300)')",
  'Action: wait()',
  "Action: finished(content='')",
];
async function serve(): Promise<ReferenceServer> {
  const s = await ReferenceServer.start({ policy: { words: WORDS } });
  servers.push(s);
  return s;
}

async function runFile(name: string, s: ReferenceServer, o: RunFile): Promise<string> {
  const file = join(dir, `${name}.json`);
  const content: RunFile = {
    name,
    seed: 3,
    tasks: { families: ['press-button', 'term-touch'] },
    desktops: { count: 2, provider: 'local' },
    ...servedPolicy(s),
    rollout: { maxSteps: 3 },
    curation: { dynamicRollouts: { max: 4 } },
    evaluation: { episodes: 2, everyMinutes: 0 },
    ...o,
  };
  await writeFile(file, JSON.stringify(content));
  return file;
}

/** Every version once, each with the batch that made it and its checkpoint in one record, and nothing left half-way. */
function closes(r: Replay, first: number): number[] {
  const c = r.counts,
    versions = r.of('batch.trained').map((e) => e.version);
  expect(r.damage).toBe(0);
  expect(c.byState).toMatchObject({ queued: 0, running: 0, claimed: 0 });
  expect(versions).toEqual(versions.map((_, i) => i + first));
  expect(r.of('batch.trained').every((e) => checkpointOf(e)?.version === e.version)).toBe(true);
  expect(new Set(r.of('batch.trained').map((e) => e.batch)).size).toBe(versions.length);
  return versions;
}

const checkpointFolder = (run: string, version: number): string =>
  join(run, 'checkpoints', `v${String(version).padStart(6, '0')}`);

/** Trains to the end; what came of it. `model` is the trainer's own, by its id on the server. */
async function trained(file: string): Promise<{ run: string; r: Replay; versions: number[]; model: string }> {
  const c = start('train', file, '--json', '--runs', runs),
    run = await folderOf(c),
    ended = await c.ended;
  expect(ended, ended.stderr).toMatchObject({ code: 0 });
  const r = await replay(run),
    versions = closes(r, 2);
  expect(versions.length).toBeGreaterThan(0);
  const manifest = await readFile(join(checkpointFolder(run, versions.at(-1)!), 'manifest.json'), 'utf8'),
    { values } = JSON.parse(manifest) as { values: { model: string } };
  return { run, r, versions, model: values.model };
}

/** Optimizer steps asked of a model; the probe has models of its own. */
const stepsOf = (s: ReferenceServer, model: string): number =>
  s.calls.filter(
    (c) => c.path.endsWith('/optim_step') && (JSON.parse(c.body.toString()) as { model_id: string }).model_id === model,
  ).length;

/** Its newest weights act on a desktop of their own, step by step; the server has no more adapters after it than before. */
async function tried(s: ReferenceServer, run: string, version: number): Promise<void> {
  const adapters = async (): Promise<string[]> => {
      const list = (await (await fetch(`${s.url}/v1/models`)).json()) as { data: { id: string }[] };
      return list.data.map((m) => m.id).sort();
    },
    before = await adapters(),
    { ended, lines } = await tryInTerminal(checkpointFolder(run, version));
  expect(ended, ended.stderr).toMatchObject({ code: 0 });
  expect(lines[0]).toMatchObject({ policy: `${basename(run)} v${version}` });
  expect(lines[1]).toMatchObject({ step: 0, version, tokens: expect.any(Array) as unknown });
  expect(lines.at(-1)).toHaveProperty('outcome.kind');
  expect(await adapters()).toEqual(before);
}

describe.skipIf(noLocal)('a vision-language model', () => {
  it('imitates demonstrations, is rolled out, trained, published, and every step is fit to train from', async () => {
    const s = await serve();
    const file = await runFile('whole', s, {
      warmStart: { demonstrations: 1, steps: 6, lr: 0.02 },
      budget: { rollouts: 16 },
    });
    const { run, r, versions, model } = await trained(file);
    // Adapters have a name of their own each, and only the last one is still loaded.
    const list = (await (await fetch(`${s.url}/v1/models`)).json()) as { data: { id: string }[] };
    expect(list.data.map((m) => m.id).filter((m) => m !== s.baseModel)).toHaveLength(1);
    // Weights have moved as often as the journal says: lessons and one step a batch.
    expect(stepsOf(s, model)).toBe(6 + versions.length * 2);

    // What its records are of, as the server says it; a step's adapter is this name and its version.
    const { served } = r.of('model.served')[0]!;
    expect(served).toMatchObject({
      model: s.baseModel,
      acting: [{ url: `${s.url}/v1`, server: 'vllm 0.32.0' }],
      conversation: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    });
    expect(list.data.map((m) => m.id)).toContain(`${served.adapters}${versions.at(-1)}`);

    const reader = await RunReader.open(run, { index: 'local' });
    try {
      const heads = r.of('trajectory.recorded').filter((e) => e.head.provenance.kind === 'rollout');
      let sampled = 0;
      for (const { head } of heads) {
        const t = (await reader.readTrajectory(head.id))!;
        for (const x of sequencesOf(t)) {
          expect(x.images.at(-1)!.frame).toEqual(x.step.frame);
          // The UI-TARS prompt alone has more.
          expect(x.symbols.length).toBeLessThan(500);
          expect([...x.logprobs].every((p) => p <= 0)).toBe(true);
          if (!x.rejected) expect(x.step.tokens!.finish).toMatch(/^(stop|length)$/);
          sampled++;
        }
        const answers = t.steps.reduce((n, step) => n + 1 + (step.rejected?.length ?? 0), 0);
        expect(sequencesOf(t)).toHaveLength(answers);
      }
      expect(sampled).toBeGreaterThan(16);
    } finally {
      await reader.close();
    }
    await tried(s, run, versions.at(-1)!);
  });

  it('acts, imitates and is trained blind: whatever is on the screen, it is shown one grey picture', async () => {
    const s = await serve(),
      { policy } = servedPolicy(s);
    const file = await runFile('blind', s, {
      policy: { ...policy, blind: true },
      warmStart: { demonstrations: 1, steps: 2, lr: 0.02 },
      evaluation: { episodes: 0 },
      budget: { updates: 2 },
    });
    const { r, model } = await trained(file),
      { adapters } = r.of('model.served')[0]!.served;
    const bodies = (path: string): Buffer[] => s.calls.filter((x) => x.path.endsWith(path)).map((x) => x.body),
      asked = bodies('/chat/completions').filter((b) =>
        (JSON.parse(b.toString()) as { model: string }).model.startsWith(adapters),
      ),
      learned = bodies('/forward_backward')
        .map(readProtoRequest)
        .filter((q) => q.modelId === model);
    const acted = asked.flatMap((b) => [...b.toString().matchAll(/base64,([^"]+)"/g)].map((m) => m[1]!)),
      taught = learned.flatMap((q) =>
        q.data.flatMap((d) =>
          d.chunks.flatMap((k) => (k.type === 'image' ? [Buffer.from(k.data).toString('base64')] : [])),
        ),
      );
    expect(acted.length).toBeGreaterThan(8);
    expect(taught.length).toBeGreaterThan(8);
    expect(new Set([...acted, ...taught]).size).toBe(1);
    // What is recorded is what was there.
    expect(new Set(r.of('rollout.step').map((e) => e.step.frame.hash)).size).toBeGreaterThan(4);
  });

  it('the runtime killed in the middle and resumed: no batch twice, none skipped, from the saved weights', async () => {
    const s = await serve();
    const file = await runFile('killed', s, {
      warmStart: { demonstrations: 1, steps: 0 },
      budget: { updates: 4 },
    });
    const first = start('train', file, '--json', '--runs', runs),
      run = await folderOf(first);
    await journalWhen(run, first, (r) => r.of('batch.trained').length >= 2);
    first.signal('SIGKILL', true);
    await first.ended;
    const before = (await replay(run)).of('batch.trained').length;
    const ended = await start('train', '--resume', run, '--json', '--runs', runs).ended;
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    const versions = closes(await replay(run), 1);
    expect(versions.length).toBeGreaterThan(before);
    expect(await readdir(join(run, 'checkpoints'))).toContain(basename(checkpointFolder(run, versions.at(-1)!)));
  });

  it('versions that the model server refuses once, the first too, are published again: none is skipped', async () => {
    const s = await serve(),
      refuse = (): void =>
        s.next('/load_lora_adapter', { status: 500, body: { message: 'incomplete metadata, file not fully covered' } });
    const file = await runFile('refused', s, {
      warmStart: { demonstrations: 1, steps: 0 },
      evaluation: { episodes: 0 },
      budget: { updates: 4 },
    });
    refuse();
    const c = start('train', file, '--json', '--runs', runs),
      run = await folderOf(c);
    await journalWhen(run, c, (r) => r.of('batch.trained').length >= 1);
    refuse();
    const ended = await c.ended;
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    const r = await replay(run),
      versions = closes(r, 1),
      notes = r.of('log').map((e) => e.message);
    expect(versions).toHaveLength(4);
    expect(notes).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^Version 0 was refused .*rollouts begin once it is taken.*file not fully covered/),
        'Version 0 is published, at attempt 2.',
        expect.stringMatching(/^Version [1-4] was refused .*with the version before.*file not fully covered/),
        expect.stringMatching(/^Version [1-4] is published, at attempt 2/),
      ]),
    );
    // Only the last version is still loaded, and on the server's disk.
    const { served } = r.of('model.served')[0]!,
      list = (await (await fetch(`${s.url}/v1/models`)).json()) as { data: { id: string; root: string }[] },
      adapters = list.data.filter((m) => m.id !== s.baseModel);
    expect(adapters.map((m) => m.id)).toEqual([`${served.adapters}4`]);
    expect([...s.disk.keys()].filter((k) => k.includes('/sampler_weights/v'))).toEqual(adapters.map((m) => m.root));
  });

  it('the engine killed in the middle and started again: rollouts wait, nothing is trained twice or lost', async () => {
    const s = await serve();
    const file = await runFile('engine-killed', s, {
      warmStart: { demonstrations: 1, steps: 0 },
      budget: { updates: 6 },
    });
    const c = start('train', file, '--json', '--runs', runs),
      run = await folderOf(c);
    for (const batches of [1, 3]) {
      await journalWhen(run, c, (r) => r.of('batch.trained').length >= batches);
      s.kill();
      await after(500);
      await s.restart();
    }
    const ended = await c.ended;
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    expect(closes(await replay(run), 1).length).toBeGreaterThan(3);
  });
});
