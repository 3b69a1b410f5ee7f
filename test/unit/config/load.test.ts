import { describe, expect, it } from 'vitest';
import {
  jsonSchema,
  merge,
  parseRunFile,
  parseRunText,
  parseStoredConfig,
  PRESETS,
  QUICKSTART_FAMILIES,
  RunFileSchema,
  type RunFile,
} from '../../../runtime/config/index.js';
import { StudioError } from '../../../runtime/domain/index.js';

const problem = (f: () => unknown): string => {
  try {
    f();
  } catch (e) {
    if (e instanceof StudioError) return e.message;
    throw e;
  }
  return 'no error';
};

describe('run file', () => {
  it('is complete from nothing: every section has its defaults', () => {
    const c = parseRunFile({});
    expect(c.desktops.screen).toEqual({ width: 640, height: 400 });
    expect(c.curation.highEntropy).toEqual({ enabled: true, keep: 0.8 });
    expect(c.trainer.tis).toEqual({ enabled: true, cap: 1 });
  });

  it('lets its own keys win over the preset, key by key', () => {
    const c = parseRunFile({ preset: 'dart', trainer: { lr: 1e-5 }, desktops: { screen: { width: 1280 } } });
    expect(c.trainer.lr).toBe(1e-5);
    expect(c.trainer.klBeta).toBe(0.1);
    expect(c.desktops.screen).toEqual({ width: 1280, height: 1080 });
  });

  it("has OSWorld's screen with OSWorld's image, unless it says otherwise", () => {
    const screen = (desktops: object): unknown => parseRunFile({ desktops }).desktops.screen;
    expect(screen({ image: 'osworld' })).toEqual({ width: 1920, height: 1080 });
    expect(screen({ image: 'osworld', screen: { width: 1280, height: 720 } })).toEqual({ width: 1280, height: 720 });
    expect(parseRunFile({}, { desktops: { image: 'osworld' } }).desktops.screen.width).toBe(1920);
    expect(
      parseRunFile({ tasks: { suite: 'miniwob', dir: '/x' }, desktops: { image: 'web' } }).desktops.screen.width,
    ).toBe(640);
  });

  it('spells out the templates of the quick start, so that a run goes on with those it began with', () => {
    const families = (file: object): readonly string[] | undefined => parseRunFile(file).tasks.families;
    expect(families({ preset: 'quickstart' })).toEqual(QUICKSTART_FAMILIES);
    const begun = { ...parseRunFile({ preset: 'quickstart' }), tasks: { families: ['desk/wizard'] } };
    expect(families(begun)).toEqual(['desk/wizard']);
    expect(families({ preset: 'quickstart', tasks: { suite: 'desk' } })).toEqual(QUICKSTART_FAMILIES);
    expect(families({ preset: 'quickstart', tasks: { suite: 'miniwob', dir: '/x' } })).toBeUndefined();
    expect(families({ preset: 'quickstart', tasks: { suite: 'folder', dir: '/x' } })).toBeUndefined();
    expect(families({ preset: 'desk' })).toBeUndefined();
  });

  it('has no templates of the quick start where its policy meets tasks of another suite', () => {
    const stored = parseRunFile({ preset: 'quickstart' }),
      families = (tasks: RunFile['tasks']): unknown =>
        parseStoredConfig(stored, { tasks, ...(tasks?.suite === 'miniwob' ? { desktops: { image: 'web' } } : {}) })
          .tasks.families;
    expect(families({ suite: 'miniwob', dir: '/x', families: undefined })).toBeUndefined();
    expect(families({ suite: 'folder', dir: '/x' })).toBeUndefined();
    expect(families({ suite: 'miniwob', dir: '/x', families: ['click-test'] })).toEqual(['click-test']);
    expect(families({ suite: 'desk' })).toEqual(QUICKSTART_FAMILIES);
  });

  it('goes on with the templates that the quick start had before run.json held them', () => {
    const { families: _, ...tasks } = parseRunFile({ preset: 'quickstart' }).tasks,
      then = parseStoredConfig({ preset: 'quickstart', tasks }).tasks.families;
    expect(then).toHaveLength(QUICKSTART_FAMILIES.length);
    expect(then).toContain('desk/entry-type');
    expect(then).not.toContain('desk/file-drag');
    const other = { preset: 'quickstart', tasks: { suite: 'miniwob', dir: '/x' } };
    expect(parseStoredConfig(other).tasks.families).toBeUndefined();
    expect(parseStoredConfig({ preset: 'desk' }).tasks.families).toBeUndefined();
  });

  it('names every wrong key at once and suggests the right one', () => {
    const m = problem(() =>
      parseRunFile({ desktop: {}, trainer: { Lr: 1, epochs: 0 }, curation: { highEntropy: { keep: 2 } } }),
    );
    expect(m).toContain('unknown key "desktop"; did you mean "desktops"?');
    expect(m).toContain('trainer: unknown key "Lr"; did you mean "lr"?');
    expect(m).toContain('trainer.epochs');
    expect(m).toContain('curation.highEntropy.keep');
  });

  it('says the line of broken JSON', () => {
    expect(problem(() => parseRunText('{\n "seed": 1,\n oops }', 'run.json'))).toMatch(
      /run\.json, line 3: not valid JSON/,
    );
  });
  it.each([
    ['a word that is none', '{\n "seed": 1,\n "name": tru\n}\n', 3],
    ['a comment', '{\n // seeds\n "seed": 1\n}\n', 2],
    ['another kind of quotes', '{\n "seed": 1,\n\n \'name\': "x"\n}\n', 4],
    ['a trailing comma', '{\n "seed": 1,\n}\n', 3],
    ['a missing comma', '{\n "seed": 1\n "name": "x"\n}\n', 3],
    ['something behind the end', '{\n "seed": 1\n}\n}\n', 4],
    ['an end that is missing', '{\n "seed": 1\n\n', 2],
  ])('says the line of %s', (_, text, line) => {
    expect(problem(() => parseRunText(text, 'run.json'))).toContain(`run.json, line ${line}: not valid JSON`);
  });
  it('reads a file that begins with a byte-order mark', () => {
    expect(parseRunText('\uFEFF{ "seed": 7 }', 'run.json').seed).toBe(7);
    expect(problem(() => parseRunText('\uFEFF{\n "seed": oops }', 'run.json'))).toContain('line 2');
  });

  it('asks for what a choice needs', () => {
    expect(problem(() => parseRunFile({ policy: { kind: 'openai' } }))).toContain('policy.openai');
    expect(problem(() => parseRunFile({ tasks: { suite: 'folder' } }))).toContain('tasks.dir');
  });

  it('starts from another run where the policy is one that is trained', () => {
    const vlm = { model: 'm', endpoints: ['http://127.0.0.1:1/v1'] },
      openai = { baseUrls: vlm.endpoints, model: 'm' },
      warmStart = { from: 'runs/other' };
    const trainer = { remote: { url: 'http://127.0.0.1:1' } };
    expect(parseRunFile({ policy: { kind: 'vlm', vlm }, trainer, warmStart }).warmStart.from).toBe('runs/other');
    expect(problem(() => parseRunFile({ policy: { kind: 'openai', openai }, warmStart }))).toContain('warmStart.from');
  });

  it('has valid presets', () => {
    for (const p of Object.values(PRESETS)) expect(RunFileSchema.safeParse(p).success).toBe(true);
  });

  it('documents every key in the JSON schema', () => {
    const missing: string[] = [];
    const walk = (s: { properties?: Record<string, never>; description?: string }, at: string): void => {
      for (const [k, v] of Object.entries(s.properties ?? {})) {
        if (!(v as { description?: string }).description) missing.push(`${at}.${k}`);
        walk(v, `${at}.${k}`);
      }
    };
    walk(jsonSchema() as never, '');
    expect(missing).toEqual([]);
  });

  it('merges without touching its inputs', () => {
    const a = { x: { y: 1, z: [1] } };
    expect(merge(a, { x: { z: [2] } })).toEqual({ x: { y: 1, z: [2] } });
    expect(a).toEqual({ x: { y: 1, z: [1] } });
  });
});
