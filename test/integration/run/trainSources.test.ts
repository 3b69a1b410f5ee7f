import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RunFile } from '../../../runtime/config/index.js';
import { id, type FamilyId } from '../../../runtime/domain/index.js';
import type { EvalPoint } from '../../../runtime/run/evaluateEpisodes.js';
import { deskSuite, trainSeed } from '../../../runtime/tasks/suites/desk/index.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { cli, cliJson, endAll, ensureBundle, replay, start } from '../../helpers/run/cli.js';
import { recorded, resultOf } from '../../helpers/run/trained.js';

/** Training runs on tasks and policies that others bring: task files of a folder, a model behind a server. */
const noLocal = await whyNoLocalDesktops(),
  provider = 'local';
if (noLocal) console.warn(`skipped: training on others' tasks and policies (${noLocal})`);

let dir: string, runs: string;
beforeAll(async () => {
  ensureBundle();
  dir = await mkdtemp(join(tmpdir(), 'dart-run-'));
  runs = join(dir, 'runs');
});
afterEach(endAll);
afterAll(() => rm(dir, { recursive: true, force: true }));

describe.skipIf(noLocal !== undefined)('a run', () => {
  it('rolls out task files of a folder, leaving out what cannot run here', async () => {
    const folder = join(dir, 'osworld'),
      file = join(dir, 'folder.json');
    await mkdir(folder, { recursive: true });
    for (const name of ['press-button', 'window-close']) {
      const t = deskSuite().task(id<FamilyId>(`desk/${name}`), trainSeed(0));
      await writeFile(
        join(folder, `${name}.json`),
        JSON.stringify({
          id: name,
          instruction: t.instruction,
          config: t.config,
          evaluator: t.evaluator,
          related_apps: t.relatedApps,
        }),
      );
    }
    await writeFile(
      join(folder, 'chrome.json'),
      JSON.stringify({
        id: 'needs-chrome',
        instruction: 'x',
        config: [],
        evaluator: { func: 'infeasible' },
        related_apps: ['chrome'],
      }),
    );
    const content: RunFile = {
      name: 'folder',
      tasks: { suite: 'folder', dir: folder },
      desktops: { count: 2, provider },
      policy: { replicas: 1 },
      rollout: { maxSteps: 3 },
      curation: { dynamicRollouts: { max: 2 } },
      evaluation: { episodes: 2, everyMinutes: 0 },
      budget: { rollouts: 6 },
    };
    await writeFile(file, JSON.stringify(content));
    const c = start('train', file, '--runs', runs, '--json'),
      ended = await c.ended;
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    const { dir: run, points } = resultOf(c),
      r = await replay(run);
    expect(points.map((p) => [p.label, p.episodes, p.errors])).toEqual([
      ['untrained', 2, 0],
      ['final', 2, 0],
    ]);
    const judged = r.of('trajectory.recorded').map((e) => e.head);
    expect(judged.filter((t) => t.outcome.kind === 'error')).toEqual([]);
    expect([...new Set(judged.map((t) => t.task))].sort()).toEqual(['press-button', 'window-close']);
    expect(judged.filter((t) => t.provenance.kind === 'rollout').length).toBeGreaterThan(0);
  });

  it('rolls out and evaluates with a remote model, past the bound that waits for a trainer, and keeps its key out of the run', async () => {
    let asked = 0;
    const seen: { auth: string | undefined; png: Buffer }[] = [];
    // A task that cannot be done: saying so is right. The model is right every other time, so that groups have
    // something to teach.
    const server = createServer((req, res) => {
      const chunks: Buffer[] = [];
      req
        .on('data', (d: Buffer) => chunks.push(d))
        .on('end', () => {
          const { messages } = JSON.parse(Buffer.concat(chunks).toString()) as {
            messages: { content: string | { type: string; image_url?: { url: string } }[] }[];
          };
          const image = messages
            .flatMap((m) => (typeof m.content === 'string' ? [] : m.content))
            .findLast((p) => p.image_url)!.image_url!.url;
          seen.push({
            auth: req.headers.authorization,
            png: Buffer.from(image.replace('data:image/png;base64,', ''), 'base64'),
          });
          const content = `Thought: I decide.\nAction: ${asked++ % 2 === 0 ? 'call_user()' : 'finished()'}`;
          res.setHeader('content-type', 'application/json').end(
            JSON.stringify({
              model: 'm@v7',
              choices: [
                {
                  message: { content },
                  token_ids: [1, 2],
                  logprobs: {
                    content: [
                      { token: 'a', logprob: -0.5, top_logprobs: [{ logprob: -0.5 }] },
                      { token: 'b', logprob: -1, top_logprobs: [{ logprob: -1 }] },
                    ],
                  },
                },
              ],
            }),
          );
        });
    });
    await new Promise<void>((r) => server.listen(0, '127.0.0.1', r));
    try {
      const folder = join(dir, 'impossible'),
        file = join(dir, 'remote.json');
      await mkdir(folder, { recursive: true });
      await writeFile(
        join(folder, 'a.json'),
        JSON.stringify({
          id: 'a',
          instruction: 'Do what cannot be done.',
          config: [],
          evaluator: { func: 'infeasible' },
          related_apps: ['os'],
        }),
      );
      const content: RunFile = {
        name: 'remote',
        tasks: { suite: 'folder', dir: folder, infeasible: true },
        desktops: { count: 2, provider },
        curation: { dynamicRollouts: { max: 2 } },
        trainer: { batchGroups: 1 },
        evaluation: { episodes: 2, everyMinutes: 0 },
        budget: { rollouts: 20 },
        policy: {
          kind: 'openai',
          openai: {
            baseUrls: [`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`],
            model: 'm',
            apiKeyEnv: 'DART_STUDIO_TEST_KEY',
          },
        },
      };
      await writeFile(file, JSON.stringify(content));
      expect(await cli('train', file, '--runs', runs)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('DART_STUDIO_TEST_KEY (policy.openai.apiKeyEnv) is not set') as string,
      });
      process.env['DART_STUDIO_TEST_KEY'] = 'the-secret-key';
      const c = start('train', file, '--runs', runs, '--json'),
        ended = await c.ended;
      expect(ended, ended.stderr).toMatchObject({ code: 0 });
      const { dir: run, points } = resultOf(c),
        r = await replay(run);
      expect(points.map((p) => [p.label, p.infeasible.episodes, p.errors])).toEqual([
        ['untrained', 2, 0],
        ['final', 2, 0],
      ]);
      // Planned ones are not counted.
      const rollouts = r.of('trajectory.recorded').filter((e) => e.head.provenance.kind === 'rollout');
      expect(rollouts.length).toBeGreaterThanOrEqual(20);
      const outcomes = recorded(r).map((t) => t.outcome.kind);
      expect(new Set(outcomes)).toEqual(new Set(['success', 'failure']));
      const steps = r.of('rollout.step').map((e) => e.step);
      for (const s of steps) expect(s).toMatchObject({ thought: 'I decide.', version: 7, origin: 'policy' });
      expect(steps.every((s) => s.tokens!.logprobs.length === 2)).toBe(true);
      for (const s of seen) {
        expect(s.auth).toBe('Bearer the-secret-key');
        expect([s.png.readUInt32BE(16), s.png.readUInt32BE(20)]).toEqual([640, 400]);
      }
      for (const f of (await readdir(run, { recursive: true, withFileTypes: true })).filter((e) => e.isFile()))
        expect((await readFile(join(f.parentPath, f.name))).includes('the-secret-key'), f.name).toBe(false);
      expect(await cliJson<EvalPoint>('evaluate', run, '--episodes', '2', '--json')).toMatchObject({
        version: 0,
        errors: 0,
        infeasible: { episodes: 2 },
      });
    } finally {
      delete process.env['DART_STUDIO_TEST_KEY'];
      await new Promise((r) => {
        server.closeAllConnections();
        server.close(r);
      });
    }
  });
});

it('no run folder holds a file that was not finished', async () => {
  if (!existsSync(runs)) return;
  expect((await readdir(runs, { recursive: true })).filter((f) => /\.(new|tmp|part)$/.test(f))).toEqual([]);
});
