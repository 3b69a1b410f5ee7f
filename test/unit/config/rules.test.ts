import { describe, expect, it } from 'vitest';
import { parseRunFile, startsEngine, type RunFile } from '../../../runtime/config/index.js';
import { StudioError, toRunError, type RunError } from '../../../runtime/domain/index.js';

const vlm: RunFile = {
  policy: { kind: 'vlm', vlm: { model: 'm', endpoints: ['http://127.0.0.1:1/v1'] } },
  trainer: { remote: { url: 'http://127.0.0.1:2' } },
};
const withTrainer = (trainer: RunFile['trainer'], remote: object = {}): RunFile => ({
  ...vlm,
  trainer: { ...trainer, remote: { url: 'http://127.0.0.1:2', ...remote } },
});
function problem(file: RunFile): RunError {
  try {
    parseRunFile(file);
  } catch (e) {
    if (e instanceof StudioError) return toRunError(e);
    throw e;
  }
  throw new Error('the run file is valid');
}

describe('what options need of one another', () => {
  it('lets demonstrations be made where there is a place for one more desktop', () => {
    for (const [capacity, demonstrations] of [
      [5, 6],
      [4, 0],
    ])
      expect(
        parseRunFile({
          preset: 'quickstart',
          warmStart: { demonstrations },
          desktops: { count: 4, provider: 'kubernetes', kubernetes: { capacity } },
        }).desktops.count,
      ).toBe(4);
  });

  it('lets a whole vision-language model pass', () => {
    const c = parseRunFile(vlm);
    expect(c.trainer.entropyBonus).toBe(0);
    expect(parseRunFile({}).trainer.entropyBonus).toBe(0.005);
    // What a run folder keeps of it is read again.
    expect(parseRunFile(c)).toEqual(c);
  });

  it('lets the size of pictures of a running engine be told, which clicks are read by', () => {
    const c = parseRunFile(withTrainer({}, { options: { minPixels: 3136, maxPixels: 500_000 } }));
    expect(c.trainer.remote!.options).toMatchObject({ minPixels: 3136, maxPixels: 500_000 });
    expect(parseRunFile(c)).toEqual(c);
  });

  it.each<[string, RunFile, string]>([
    ['policy.vlm', { policy: { kind: 'vlm' }, trainer: vlm.trainer }, 'policy.vlm.endpoints'],
    ['trainer.remote', { policy: vlm.policy }, 'trainer.remote.url'],
    ['policy.vlm.endpoints', { ...vlm, policy: { kind: 'vlm', vlm: { model: 'm' } } }, '/v1'],
    ['trainer.remote.apiKeyEnv', { ...vlm, trainer: { remote: { apiKeyEnv: 'X' } } }, 'trainer.remote.url'],
    [
      'policy.vlm.apiKeyEnv',
      { policy: { kind: 'vlm', vlm: { model: 'm', apiKeyEnv: 'X' } }, trainer: { remote: {} } },
      'policy.vlm.endpoints',
    ],
    [
      'policy.vlm.adapters',
      { policy: { kind: 'vlm', vlm: { model: 'm', adapters: '/mnt' } }, trainer: { remote: {} } },
      'policy.vlm.endpoints',
    ],
    ['trainer.remote.options', withTrainer({}, { options: { dtype: 'float32' } }), 'trainer.remote.url'],
    [
      'trainer.remote.options',
      withTrainer({}, { options: { maxPixels: 500_000, microBatchTokens: 8192 } }),
      'minPixels and maxPixels may stay',
    ],
    ['policy.vlm', { policy: { ...vlm.policy, kind: 'embedded' } }, 'policy.kind'],
    ['trainer.remote', { trainer: vlm.trainer }, 'policy.kind'],
    [
      'warmStart.from',
      {
        policy: { kind: 'openai', openai: { baseUrls: ['http://127.0.0.1:8000/v1'], model: 'm' } },
        warmStart: { from: 'runs/x' },
      },
      'embedded',
    ],
    ['warmStart.reading', { ...vlm, preset: 'quickstart', trainer: { ...vlm.trainer, entropyBonus: 0 } }, 'ui-tars-7b'],
    [
      'warmStart.demonstrations',
      { preset: 'quickstart', desktops: { count: 4, provider: 'kubernetes', kubernetes: { capacity: 4 } } },
      'desktops.kubernetes.capacity',
    ],
    [
      'warmStart.demonstrations',
      {
        preset: 'quickstart',
        desktops: {
          count: 4,
          provider: 'docker',
          hosts: [
            { host: 'tcp://10.0.0.2:2375', capacity: 1 },
            { host: 'tcp://10.0.0.3:2375', capacity: 3 },
          ],
        },
      },
      'desktops.hosts',
    ],
    ['trainer.entropyBonus', withTrainer({ entropyBonus: 0.01 }), 'trainer.entropyBonus'],
    ['trainer.klBeta', withTrainer({ klBeta: 0.1 }, { loss: 'server' }), 'client'],
    ['trainer.algorithm', withTrainer({ algorithm: 'gspo' }, { loss: 'server' }), 'client'],
    ['trainer.reuse.enabled', withTrainer({ reuse: { enabled: true } }, { loss: 'server' }), 'client'],
    ['trainer.targetKl', withTrainer({ targetKl: 0.01 }, { loss: 'server' }), 'client'],
    ['trainer.targetKl', { preset: 'dart', trainer: { targetKl: 0.01 } }, 'trainer.minibatchStates'],
    ['trainer.imitation', { trainer: { imitation: 'adaptive', replay: 0 } }, 'trainer.replay'],
    ['trainer.imitation', { trainer: { imitation: 'adaptive', replay: 4, imitationCoef: 0 } }, 'trainer.imitationCoef'],
    [
      'curation.hindsight.enabled',
      { curation: { hindsight: { enabled: true } }, trainer: { replay: 4 }, tasks: { suite: 'folder', dir: '/tasks' } },
      'tasks.suite',
    ],
    ['curation.hindsight.enabled', { curation: { hindsight: { enabled: true } }, trainer: { replay: 0 } }, 'replay'],
    [
      'curation.hindsight.enabled',
      { curation: { hindsight: { enabled: true }, pool: { enabled: false } }, trainer: { replay: 4 } },
      'curation.pool.enabled',
    ],
    ['trainer.reuse.epochs', withTrainer({ epochs: 6, reuse: { enabled: true, epochs: 4 } }), 'trainer.epochs'],
  ])('names %s and what to do', (key, file, remedy) => {
    const e = problem(file);
    expect(e.kind).toBe('config.invalid');
    expect(e.message.split('\n').map((l) => l.split(':')[0])).toEqual([key]);
    expect(e.remedy).toContain(remedy);
  });

  it('lets an update be stopped that has several steps', () => {
    const one = { targetKl: 0.01, epochs: 1, minibatchStates: 0 };
    for (const trainer of [{ minibatchStates: 24 }, { epochs: 2 }, { reuse: { enabled: true, epochs: 2 } }])
      expect(parseRunFile({ trainer: { ...one, ...trainer } }).trainer.targetKl).toBe(0.01);
    expect(problem({ trainer: { ...one, reuse: { enabled: false, epochs: 2 } } }).message).toContain('targetKl');
    expect(parseRunFile(withTrainer({ targetKl: 0.01 })).trainer.imitation).toBe('fixed');
  });

  it('starts an engine where none is named, in a preset too, and a named one takes its place', () => {
    const own = { policy: { kind: 'vlm', vlm: { model: 'm' } }, trainer: { remote: { engine: 'auto' } } } as const;
    expect(startsEngine(parseRunFile(own))).toBe(true);
    expect(startsEngine(parseRunFile({ preset: 'ui-tars-7b' }))).toBe(true);
    expect(startsEngine(parseRunFile({ ...vlm, preset: 'ui-tars-7b' }))).toBe(false);
    expect(startsEngine(parseRunFile({ preset: 'quickstart' }))).toBe(false);
    expect(problem({ ...own, trainer: { remote: { options: { device: 'cuda; rm -rf' } } } }).message).toContain(
      'device',
    );
  });

  it('makes a run deterministic whatever the preset says, and refuses what contradicts it in words', () => {
    const run = { deterministic: true };
    for (const preset of [undefined, 'quickstart', 'dart'] as const) {
      const c = parseRunFile({ run, ...(preset ? { preset } : {}), budget: { updates: 3 } });
      expect(c.desktops.count).toBe(1);
      expect(c.policy.replicas).toBe(1);
      expect(c.rollout.regime).toBe('batch');
      expect(c.budget).toEqual({ updates: 3 });
      expect(parseRunFile(c)).toEqual(c);
    }
    expect(parseRunFile({}).run.deterministic).toBe(false);
    const e = problem({
      run,
      desktops: { count: 2 },
      policy: { replicas: 2 },
      rollout: { regime: 'rollout' },
      trainer: { threads: 2 },
      evaluation: { everyMinutes: 5 },
      budget: { minutes: 3 },
    });
    expect(e.message.split('\n').map((l) => l.split(':')[0])).toEqual([
      'desktops.count',
      'policy.replicas',
      'rollout.regime',
      'trainer.threads',
      'evaluation.everyMinutes',
      'budget.minutes',
    ]);
    expect(e.remedy).toContain('leave run.deterministic out');
  });

  it('names everything that is missing at once', () => {
    const e = problem({ policy: { kind: 'vlm' }, tasks: { suite: 'folder' } });
    expect(e.message.split('\n').map((l) => l.split(':')[0])).toEqual(['policy.vlm', 'trainer.remote', 'tasks.dir']);
    expect(e.remedy.split('\n')).toHaveLength(3);
  });

  it('refuses no run file that 0.1 took: a remote model under the quick start', () => {
    const openai = { baseUrls: ['http://127.0.0.1:1/v1'], model: 'm' };
    expect(parseRunFile({ preset: 'quickstart', policy: { kind: 'openai', openai } }).policy.kind).toBe('openai');
    expect(parseRunFile({ policy: { kind: 'embedded', openai } }).policy.kind).toBe('embedded');
  });
});
