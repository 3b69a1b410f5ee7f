import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { StudioError } from '../../../runtime/domain/index.js';
import { parseTask } from '../../../runtime/tasks/index.js';
import { checkFolder } from '../../../runtime/tasks/check.js';
import { desk } from '../../helpers/tasks/images.js';
import { osworldExamples } from '../../helpers/tasks/osworld.js';
import { loadTaskFile } from '../../helpers/tasks/files.js';

const base = { id: 'x', instruction: 'Do it.', config: [], evaluator: { func: 'infeasible' } };
function errorOf(json: unknown, file = 'dir/x.json'): StudioError {
  try {
    parseTask(json, file);
  } catch (e) {
    return e as StudioError;
  }
  throw new Error('it was taken');
}

describe('task files', () => {
  it('fields become a task; a file is its own family', () => {
    expect(
      parseTask(
        { ...base, related_apps: ['os'], proxy: true, max_steps: 7, source: 'x', trajectory: 'trajectories/' },
        'x.json',
      ),
    ).toMatchObject({
      id: 'x',
      family: 'x',
      instruction: 'Do it.',
      relatedApps: ['os'],
      infeasible: true,
      proxy: true,
      maxSteps: 7,
      evaluator: { conj: 'and', postconfig: [] },
    });
  });
  it('fill in optional fields that are absent', () => {
    const { config: _c, ...rest } = base;
    expect(parseTask({ ...rest, related_apps: null }, 'x.json')).toMatchObject({ config: [], relatedApps: [] });
    expect(
      parseTask(
        {
          ...base,
          evaluator: {
            func: ['a', 'b'],
            result: [{ type: 'r' }, {}],
            expected: [null, { type: 'e' }],
            options: [{}, null],
            conj: 'or',
          },
        },
        'x.json',
      ).evaluator.conj,
    ).toBe('or');
    expect(parseTask({ ...base, evaluator: { func: ['a', 'b'], result: {} } }, 'x.json').evaluator.func).toEqual([
      'a',
      'b',
    ]);
  });
  it("a file named by a uuid is known by it, as OSWorld's runner does", () => {
    expect(parseTask(base, '/a/b/0f4c3d2e-5a6b-4c7d-8e9f-000000000001.json').id).toBe(
      '0f4c3d2e-5a6b-4c7d-8e9f-000000000001',
    );
    expect(parseTask(base, '/a/0f4c3d2e.json').id).toBe('x');
  });
  it('unknown types are no fault of the file', () => {
    const task = parseTask(
      {
        ...base,
        config: [{ type: 'fly', parameters: { x: 1 } }],
        evaluator: { func: 'new_metric', result: { type: 'new_getter', any: [1] } },
      },
      'x.json',
    );
    expect(task.config.map((c) => c.type)).toEqual(['fly']);
    expect(task.evaluator.func).toBe('new_metric');
  });
  it.each([
    ['an empty object', {}, 'id'],
    ['no instruction', { ...base, instruction: '' }, 'instruction'],
    ['config that is no list', { ...base, config: {} }, 'config'],
    ['a step without type', { ...base, config: [{ parameters: {} }] }, 'config[0].type'],
    ['no evaluator', { ...base, evaluator: undefined }, 'evaluator'],
    ['no func', { ...base, evaluator: {} }, 'evaluator.func'],
    ['an unknown conj', { ...base, evaluator: { func: 'a', conj: 'xor' } }, 'evaluator.conj'],
    [
      'a result list of the wrong length',
      { ...base, evaluator: { func: ['a', 'b'], result: [{ type: 'r' }] } },
      'evaluator.result',
    ],
    ['a list for one metric', { ...base, evaluator: { func: 'a', expected: [{ type: 'r' }] } }, 'evaluator.expected'],
    [
      'a download without path',
      { ...base, config: [{ type: 'download', parameters: { files: [{ url: 'https://x/y' }] } }] },
      'config[0].parameters.files[0].path',
    ],
    [
      'a download from a file',
      { ...base, config: [{ type: 'download', parameters: { files: [{ url: 'file:///etc/passwd', path: '/a' }] } }] },
      'config[0].parameters.files[0].url',
    ],
    [
      'an empty command',
      { ...base, config: [{ type: 'launch', parameters: { command: [] } }] },
      'config[0].parameters.command',
    ],
    [
      'output saved outside the cache',
      { ...base, config: [{ type: 'execute', parameters: { command: 'x', stdout: '../../x' } }] },
      'config[0].parameters.stdout',
    ],
    [
      'a negative sleep',
      { ...base, evaluator: { func: 'a', postconfig: [{ type: 'sleep', parameters: { seconds: -1 } }] } },
      'evaluator.postconfig[0].parameters.seconds',
    ],
    [
      'a path with NUL',
      { ...base, config: [{ type: 'open', parameters: { path: 'a\0b' } }] },
      'config[0].parameters.path',
    ],
    ['no object at all', [], '(the file)'],
  ] as const)('refuses %s, naming file and field', (_what, json, field) => {
    const e = errorOf(json).error;
    expect(e).toMatchObject({ kind: 'task.invalid', details: { file: 'dir/x.json', field } });
    expect(e.message).toContain('dir/x.json');
    expect(e.message).toContain(field);
  });
  it('reads files; a missing or broken one is invalid', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'task-'));
    try {
      await writeFile(join(dir, 'a.json'), `\uFEFF${JSON.stringify(base)}`);
      expect((await loadTaskFile(join(dir, 'a.json'))).id).toBe('x');
      await writeFile(join(dir, 'b.json'), '{"id": ');
      await expect(loadTaskFile(join(dir, 'b.json'))).rejects.toMatchObject({
        kind: 'task.invalid',
        message: expect.stringContaining('not JSON') as string,
      });
      await expect(loadTaskFile(join(dir, 'none.json'))).rejects.toMatchObject({ kind: 'task.invalid' });
    } finally {
      await rm(dir, { recursive: true });
    }
  });
});

describe("OSWorld's own task files", () => {
  let examples: string;
  beforeAll(async () => {
    examples = await osworldExamples();
  });
  afterAll(() => rm(examples, { recursive: true }));
  it('all 197 load, each with its own id; what each needs is known', async () => {
    const rows = await checkFolder(examples, { image: desk });
    expect(rows).toHaveLength(197);
    expect(rows.filter((r) => r.error)).toEqual([]);
    expect(new Set(rows.map((r) => r.id)).size).toBe(197);
    for (const r of rows) expect(r.status === 'runnable', r.id).toBe(r.needs.length === 0);
    const needs = new Map(rows.map((r) => [r.id, r.needs]));
    expect(needs.get('06fe7178-4491-4589-810f-2e2bc9502122')).toEqual([
      'app:chrome',
      'getter:open_tabs_info',
      'metric:is_expected_tabs',
      'network',
      'program:socat',
    ]);
    expect(
      needs
        .get('23393935-50c7-4a86-aeea-2b78fd089c5c')!
        .every((n) => n.startsWith('asset:https://drive.usercontent.google.com/')),
    ).toBe(true);
    expect(needs.get('897e3b53-5d4d-444b-85cb-2cdc8a97d903')).toContain('network');
  });
});
