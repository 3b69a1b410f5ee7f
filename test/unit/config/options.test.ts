import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { jsonSchema, mechanismNames, parseRunFile, SHIPPED, type RunConfig } from '../../../runtime/config/index.js';
import type { EmbeddedBatch, PolicyKind, Size } from '../../../runtime/domain/index.js';
import type { DataConfig } from '../../../runtime/data/config.js';
import { mechanisms } from '../../../runtime/data/curation/registry.js';
import { dataConfig } from '../../../runtime/data/fromConfig.js';
import type { KeepRules } from '../../../runtime/data/store/retention.js';
import { gateOptions } from '../../../runtime/rollout/regime.js';
import { trainerOptions, type RunFileOptions } from '../../../runtime/trainer/native/options.js';

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly deprecated?: boolean;
}
/** Every option of the run file that has no options of its own, by its path. */
function leaves(s: Schema, at: readonly string[] = []): string[] {
  return Object.entries(s.properties ?? {}).flatMap(([k, v]) => {
    if (v.deprecated) return [];
    return v.properties ? leaves(v, [...at, k]) : [[...at, k].join('.')];
  });
}
const options = leaves(jsonSchema());

/** For editors and people, and what is spelt out when the file is read: nothing that a run asks for. */
const notForRuns = ['$schema', 'preset'];
/** Sections that go to their consumer as they are: it knows the options by the same names. */
const passedWhole = (
  c: RunConfig,
): { 'desktops.screen': Size; 'trainer.reuse': EmbeddedBatch['reuse']; 'store.keep': Required<KeepRules> } => ({
  'desktops.screen': c.desktops.screen,
  'trainer.reuse': c.trainer.reuse,
  'store.keep': c.store.keep as Required<RunConfig['store']['keep']>,
});

/** Options that some file of the runtime reads, the schema's own aside. */
async function optionsRead(): Promise<Set<string>> {
  const args = ['test/helpers/config/optionsRead.mjs', JSON.stringify([...options])];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return new Set(JSON.parse(stdout) as string[]);
}

describe('the options of the run file', () => {
  it('are each read by something outside the schema, under their own name', async () => {
    const read = await optionsRead();
    expect(options.length).toBeGreaterThan(80);
    const whole = Object.keys(passedWhole(parseRunFile({})));
    expect(whole.filter((o) => !read.has(o))).toEqual([]);
    const used = (o: string): boolean => read.has(o) || whole.some((w) => o.startsWith(`${w}.`));
    expect(options.filter((o) => !used(o) && !notForRuns.includes(o))).toEqual([]);
  }, 300_000);

  it('reach the data manager and the trainer with the values of the run file, whatever these are', () => {
    const c = unlike(parseRunFile({})),
      data = dataConfig(c),
      trainer = trainerOptions(c, '/weights');
    for (const name of mechanismNames) expect(data[name]).toMatchObject(c.curation[name]);
    expect(data.planner).toEqual({
      seed: c.seed,
      planner: c.curation.planner,
      uncertainty: c.curation.uncertainty,
      pilot: c.curation.pilot,
      retries: c.rollout.retries,
    });
    expect(data.dynamicLength.global).toBe(c.rollout.maxSteps);
    expect(data.groupFilter.maxSize).toBe(c.curation.dynamicRollouts.max);
    expect(data.staleness.groupsPerUpdate).toBe(c.trainer.batchGroups);
    const { temperature, readingCoef, replayVary, ...own }: Partial<RunFileOptions> & { exportDir?: string } = trainer;
    delete own.exportDir;
    expect(own).toEqual(Object.fromEntries(Object.keys(own).map((k) => [k, c.trainer[k as keyof typeof c.trainer]])));
    expect([temperature, readingCoef]).toEqual([c.policy.temperature, c.warmStart.reading.coef]);
    const { replayVaried } = c.trainer,
      { shift, tones } = c.warmStart;
    expect(replayVary).toEqual(replayVaried ? { shift, tones } : undefined);
    expect(gateOptions(c)).toMatchObject({ regime: c.rollout.regime, slots: c.desktops.count });
  });

  it('hold up no policy that is not trained, of whatever kind', () => {
    const c = parseRunFile({ rollout: { regime: 'batch' } });
    const of = (kind: PolicyKind): unknown[] => {
      const own = { ...c, policy: { ...c.policy, kind } };
      return [dataConfig(own).staleness.enabled, gateOptions(own).regime];
    };
    expect(Object.fromEntries(Object.keys(SHIPPED).map((k) => [k, of(k)]))).toEqual({
      embedded: [true, 'batch'],
      vlm: [true, 'batch'],
      openai: [false, 'rollout'],
    });
  });

  it('bound the staleness of every policy that is trained, and of no other', () => {
    const vlm = { model: 'm' },
      openai = { baseUrls: ['http://127.0.0.1:1/v1'], model: 'm' };
    const bounded = (file: object): boolean => dataConfig(parseRunFile(file)).staleness.enabled;
    expect(bounded({})).toBe(true);
    expect(bounded({ policy: { kind: 'vlm', vlm }, trainer: { remote: { engine: 'auto' } } })).toBe(true);
    expect(bounded({ policy: { kind: 'openai', openai } })).toBe(false);
  });

  it('have their one default in the schema: the data manager and the trainer get it unchanged', () => {
    const c = parseRunFile({}),
      data: DataConfig = dataConfig(c);
    for (const name of mechanismNames) expect(data[name]).toMatchObject(c.curation[name]);
    expect(trainerOptions(c, '')).toMatchObject({ lr: c.trainer.lr, tis: c.trainer.tis, epsLow: c.trainer.epsLow });
  });

  it('of curation mechanisms stand beside what these do, name by name', () => {
    expect(Object.keys(mechanisms).sort()).toEqual([...mechanismNames].sort());
    for (const name of mechanismNames) {
      const charts = mechanisms[name].charts.map((x) => x.name);
      expect(new Set(charts).size).toBe(charts.length);
    }
  });
});

/** Every number moved and every flag turned, so that a value that comes from elsewhere shows. */
function unlike(c: RunConfig): RunConfig {
  const turn = (v: unknown): unknown => {
    if (typeof v === 'number') return v + 1;
    if (typeof v === 'boolean') return !v;
    if (Array.isArray(v)) return v;
    if (typeof v === 'object' && v !== null) return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, turn(x)]));
    return v;
  };
  return turn(c) as RunConfig;
}
