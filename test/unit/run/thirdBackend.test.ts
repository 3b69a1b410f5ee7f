import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { jsonSchema, optionsOf, parseRunFile, traitsOf, type RunConfig } from '../../../runtime/config/index.js';
import type { ClaimedBatch } from '../../../runtime/data/claims.js';
import { dataConfig } from '../../../runtime/data/fromConfig.js';
import {
  id,
  type BatchId,
  type FamilyId,
  type LearnStep,
  type RolloutId,
  type StepSample,
  type TaskId,
} from '../../../runtime/domain/index.js';
import type { Policy } from '../../../runtime/policy/types.js';
import { gateOptions, regimeGate } from '../../../runtime/rollout/regime.js';
import { startActing } from '../../../runtime/run/acting.js';
import { backendOf, registerBackend, type Backend, type BackendRequest } from '../../../runtime/run/backends/index.js';
import { creditOf, learnerOf } from '../../../runtime/run/backends/learner.js';
import type { Learner } from '../../../runtime/run/backends/types.js';
import { StartedParts } from '../../../runtime/run/backends/startedParts.js';
import { fileActor } from '../../../runtime/run/collect/policy.js';
import { updateLoop } from '../../../runtime/run/updateLoop.js';
import type { TrainerEngine, UpdateReport } from '../../../runtime/trainer/types.js';
import { makeTrajectory, success } from '../../helpers/data/manager.js';

/** What a folder in policy/ would have: a policy with one choice, to wait or to say that it is done. */
interface Coin {
  version: number;
  /** Of being done. */
  logit: number;
}
const coinPolicy = (weights: Readonly<Coin>, mark: string): Policy => ({
  open: () =>
    ({
      decide: () => {
        const p = 1 / (1 + Math.exp(-weights.logit)),
          done = p >= 0.5,
          logprob = Math.log(done ? p : 1 - p);
        return Promise.resolve({
          thought: mark,
          actions: [done ? { type: 'finished' as const } : { type: 'wait' as const }],
          tokens: { logprobs: Float32Array.of(logprob), entropies: Float32Array.of(0.5) },
          version: weights.version,
          queueMs: 0,
          computeMs: 0,
        } as never);
      },
      acted: () => undefined,
      close: () => Promise.resolve(),
    }) as never,
});
/** What a folder in trainer/ would have. */
interface CoinSample extends StepSample {
  readonly done: boolean;
}
const coinTrainer = (weights: Coin): TrainerEngine<CoinSample, Coin> => ({
  update: (b) => {
    for (const s of b.samples) weights.logit += s.weight * s.advantage * (s.done ? 1 : -1);
    weights.version++;
    return Promise.resolve({ version: weights.version, samples: b.samples.length } as UpdateReport);
  },
  checkpoint: () => Promise.resolve({ version: weights.version, dir: '/nowhere' }),
  restore: () => Promise.resolve(),
  exportWeights: () => Promise.resolve({ ...weights }),
  interrupt: () => undefined,
  close: () => Promise.resolve(),
});

/** The one registration: everything between the two folders and the rest of the house. */
const options = z.strictObject({
  mark: z.string().describe('What the coin thinks.'),
  bias: z.number().default(0).describe('Where it begins.'),
});
const coinOf = (c: RunConfig): z.output<typeof options> => optionsOf<z.output<typeof options>>(c, 'coin')!;
const coin: Backend = {
  kind: 'coin',
  says: 'a coin',
  traits: { trained: true, processes: false, onnx: false, types: 'text', random: false, midway: false, chat: false },
  options,
  defaults: { trainer: { entropyBonus: 0 } },
  rules: [
    {
      key: 'policy.coin',
      broken: (c) => optionsOf(c, 'coin') === undefined,
      what: 'required because policy.kind is "coin"',
      remedy: 'Set policy.coin.mark.',
    },
  ],
  elsewhere: [
    {
      key: 'policy.coin',
      broken: (c) => optionsOf(c, 'coin') !== undefined,
      what: 'only a policy of kind "coin" has it',
      remedy: 'Set policy.kind to "coin", or leave policy.coin out.',
    },
  ],
  model: (c) => coinOf(c).mark,
  start: (r, parts) => {
    const { mark, bias } = coinOf(r.config),
      acting: Coin = { version: r.version ?? 0, logit: bias },
      trainer = coinTrainer({ ...acting });
    parts.add(() => trainer.close());
    return Promise.resolve({
      policy: coinPolicy(acting, mark),
      frames: r.frames,
      learner: learnerOf({
        trainer,
        source: {
          expressible: () => true,
          sampleOf: (step: LearnStep) =>
            Promise.resolve({
              ...creditOf(step),
              done: step.trajectory.steps[step.step]!.actions[0]?.type === 'finished',
            }),
        },
        publish: (w) => {
          Object.assign(acting, w);
          return Promise.resolve({} as never);
        },
      }),
    });
  },
};
const FILE = { policy: { kind: 'coin', coin: { mark: 'heads', bias: -1 } } };
const problem = (file: object): string => {
  try {
    parseRunFile(file);
    return '';
  } catch (e) {
    return (e as Error).message;
  }
};
const request = (config: RunConfig): BackendRequest =>
  ({ config, dir: '/nowhere', run: 'r', frames: {}, entry: {}, signal: new AbortController().signal }) as never;
const decided = async (policy: Policy): Promise<unknown> => {
  const session = policy.open({} as never),
    d = await session.decide({} as never, new AbortController().signal);
  return [d.actions[0]!.type, d.thought, d.version];
};

describe('a third backend, by its registration alone', () => {
  let undo: () => void;
  beforeEach(() => {
    undo = registerBackend(coin);
  });
  afterEach(() => undo());

  it('is read from run files, with its own defaults, rules and misspelt keys', () => {
    const c = parseRunFile(FILE);
    expect([c.policy.kind, coinOf(c), c.trainer.entropyBonus]).toEqual(['coin', { mark: 'heads', bias: -1 }, 0]);
    expect(parseRunFile({ preset: 'quickstart', ...FILE, trainer: { lr: 1 } }).trainer.lr).toBe(1);
    expect(problem({ policy: { kind: 'coin' } })).toContain('policy.coin: required');
    expect(problem({ policy: { coin: { mark: 'x' } } })).toContain('only a policy of kind "coin"');
    expect(problem({ policy: { kind: 'coin', coin: { mrk: 'x' } } })).toContain('did you mean "mark"');
    expect(problem({ policy: { kind: 'coins' } })).toMatch(/policy\.kind: .*"coin"/);
    expect(problem({ ...FILE, curation: { branches: { enabled: true } } })).toContain('middle of an episode');
  });
  it('is in the JSON schema, which an editor completes with, and what was there stays', () => {
    const { policy } = jsonSchema().properties!,
      { kind, coin: own, vlm } = policy!.properties!;
    expect(kind).toMatchObject({ enum: ['embedded', 'vlm', 'openai', 'coin'], default: 'embedded' });
    expect(kind!['description']).toContain('`coin`: a coin.');
    expect(own!.properties).toHaveProperty('bias');
    expect(vlm!.properties).toHaveProperty('imageToken');
    expect(problem({ policy: { kind: 'vlm', vlm: { model: 'm' } } })).toContain('trained by an engine');
  });
  it('is bounded and batched as what it says it is', () => {
    const c = parseRunFile({ ...FILE, rollout: { regime: 'batch' } });
    expect([dataConfig(c).staleness.enabled, gateOptions(c).regime]).toEqual([true, 'batch']);
    expect(traitsOf('coin').trained).toBe(true);
  });
  it('acts, and has a name for people', async () => {
    const acting = await startActing(request(parseRunFile(FILE)));
    expect(await decided(acting.policy)).toEqual(['wait', 'heads', 0]);
    await acting.close();
    expect(backendOf('coin').model!(parseRunFile(FILE))).toBe('heads');
  });
  it('a lesson that is interrupted while its samples are built ends as one that is interrupted later', async () => {
    const done: string[] = [];
    let interrupted = false;
    const trainer: TrainerEngine<CoinSample, Coin> = {
      ...coinTrainer({ version: 0, logit: 0 }),
      // As all of them do.
      async imitate(b) {
        interrupted = false;
        await Promise.resolve();
        done.push(`${b.samples.length} ${interrupted ? 'ended' : 'learned'}`);
        return {} as UpdateReport;
      },
      interrupt: () => {
        interrupted = true;
      },
    };
    let stops = true;
    const learner: Learner = learnerOf<CoinSample, Coin>({
      trainer,
      source: {
        expressible: () => true,
        sampleOf: (step) => {
          if (stops) learner.interrupt();
          return Promise.resolve({ ...creditOf(step), done: true });
        },
      },
      publish: () => Promise.reject(new Error('not asked')),
    });
    const trajectory = makeTrajectory(
        { rollout: id<RolloutId>('r'), family: id<FamilyId>('f'), task: id<TaskId>('f#1'), cap: 3 },
        success,
        { steps: 2 },
      ),
      steps = [0, 1].map((step): LearnStep => ({ trajectory, step, kind: 'imitation', advantage: 0, weight: 1 })),
      imitate = (): Promise<UpdateReport> =>
        learner.imitate!({ id: id<BatchId>('w'), steps, epochs: 1 }, { steps: 9, lr: 1, shift: 0 });
    await imitate();
    stops = false;
    await imitate();
    expect(done).toEqual(['1 ended', '2 learned']);
  });
  it('is trained and published by the update loop of every policy', async () => {
    const { signal } = new AbortController(),
      { policy, learner } = await backendOf('coin').start(request(parseRunFile(FILE)), new StartedParts(signal)),
      trajectory = makeTrajectory(
        { rollout: id<RolloutId>('r'), family: id<FamilyId>('f'), task: id<TaskId>('f#1'), cap: 3 },
        success,
        { steps: 1 },
      ),
      stop = new AbortController(),
      steps: LearnStep[] = [{ trajectory, step: 0, kind: 'policy', advantage: -2, weight: 1 }];
    let left = 1,
      version = 0;
    await updateLoop<number>(
      {
        data: {
          claimBatch: () =>
            Promise.resolve(
              left-- > 0
                ? ({ id: id<BatchId>('b'), version, groups: [{}], steps: 1 } as unknown as ClaimedBatch)
                : undefined,
            ),
          release: () => Promise.resolve(),
          onChange: () => () => undefined,
        },
        gate: regimeGate({ regime: 'rollout', slots: 1, groups: 1 }),
        batchGroups: 1,
        version: () => version,
        behavior: () => version,
        train: async (b) => {
          ({ version } = await learner!.update({ id: b.id, steps, epochs: 1 }));
          return version;
        },
        publish: async () => {
          await (await learner!.snapshot()).publish();
          stop.abort();
        },
        onGenerate: () => undefined,
        spare: () => Promise.resolve(false),
      },
      stop.signal,
    );
    // Waiting was bad: it says now that it is done.
    expect(await decided(policy)).toEqual(['finished', 'heads', 1]);
  });
  it('has its own name, and none of an option that every policy has', () => {
    for (const kind of ['coin', 'vlm', 'replicas', 'Upper', ''])
      expect(() => registerBackend({ ...coin, kind }), kind).toThrow(RangeError);
  });
});

describe('what a run file names', () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'actor-'));
  });
  afterEach(() => rm(dir, { recursive: true }));
  it('needs weights only where its policy has none by itself', async () => {
    const undo = registerBackend(coin);
    try {
      await writeFile(join(dir, 'coin.json'), JSON.stringify(FILE));
      await writeFile(join(dir, 'own.json'), '{}');
      expect((await fileActor(join(dir, 'coin.json'), { over: {} })).name).toBe('heads');
      await expect(fileActor(join(dir, 'own.json'), { over: {} })).rejects.toThrow('no weights');
    } finally {
      undo();
    }
    await expect(fileActor(join(dir, 'coin.json'), { over: {} })).rejects.toThrow('policy.kind');
  });
});
