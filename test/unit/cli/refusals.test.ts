import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RunStore } from '../../../runtime/data/store/runStore.js';
import { parseRunFile } from '../../../runtime/config/index.js';
import { id, type RunId } from '../../../runtime/domain/index.js';
import { makeRun, onePress } from '../../helpers/interchange/make.js';
import { ran } from '../../helpers/run/ran.js';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'refusals-'));
});
afterEach(() => rm(dir, { recursive: true }));

/** An empty run: as a run that was begun has it, with this in its description. */
async function emptyRun(name: string, more: object = {}): Promise<void> {
  const store = await RunStore.open(join(dir, name), {
    index: 'local',
    create: { id: id<RunId>(name), createdAt: 1, config: parseRunFile({ preset: 'quickstart' }), ...more },
  });
  await store.close();
}

describe('`train --figures`', () => {
  it('does not take the run file for its own file', async () => {
    const file = join(dir, 'run.json'),
      text = JSON.stringify({ preset: 'desk' });
    await writeFile(file, text);
    const { code, err } = await ran('train', '--runs', join(dir, 'runs'), '--figures', file);
    expect([code, err]).toEqual([2, expect.stringContaining(`train ${file} --figures`)]);
    expect([await readFile(file, 'utf8'), await readdir(dir)]).toEqual([text, ['run.json']]);
  });
  it('says before a run begins that its file cannot be written', async () => {
    const runs = join(dir, 'runs');
    for (const file of [join(dir, 'none', 'figures.json'), dir])
      expect(await ran('train', '--runs', runs, '--figures', file)).toMatchObject({
        code: 2,
        err: expect.stringContaining(`--figures ${file}`) as string,
      });
    expect(await readdir(dir)).toEqual([]);
  });
  it('does not take the run file for a credential plug-in', async () => {
    const { code, err } = await ran('train', '--kube-plugin', 'aws', 'run.json');
    expect([code, err]).toEqual([2, expect.stringContaining('train run.json --kube-plugin')]);
  });
});

describe('`train --resume`', () => {
  it('refuses a collection, and what holds imports alone', async () => {
    await emptyRun('collected', { collected: { policy: 'p' } });
    await makeRun(join(dir, 'imports'), [onePress]);
    const meta = join(dir, 'imports', 'run.json'),
      { config: _, ...told } = JSON.parse(await readFile(meta, 'utf8')) as Record<string, unknown>;
    await writeFile(meta, JSON.stringify({ ...told, config: parseRunFile({ preset: 'quickstart' }) }));
    for (const run of ['collected', 'imports'])
      expect(await ran('train', '--runs', dir, '--resume', run)).toMatchObject({
        code: 2,
        err: expect.stringContaining('curation.pool.from') as string,
      });
  });
  it('refuses a preset and a seed of its own', async () => {
    await emptyRun('a');
    const { code, err } = await ran('train', '--runs', dir, '--resume', 'a', '--preset', 'desk', '--seed', '2');
    expect([code, err]).toEqual([2, expect.stringContaining('--preset, --seed: not beside --resume')]);
  });
});

describe('an option', () => {
  it('is named as it is typed, and counts in whole numbers', async () => {
    expect((await ran('train', '--resume', 'x', '--more-minutes', 'many')).err).toContain(
      '--more-minutes many: a number',
    );
    for (const wrong of [
      ['--episodes', '1.5'],
      ['--checkpoint', '1.5'],
    ]) {
      await emptyRun(`a${wrong[0]!}`);
      expect(await ran('evaluate', `a${wrong[0]!}`, '--runs', dir, ...wrong)).toMatchObject({
        code: 2,
        err: expect.stringContaining(`${wrong.join(' ')}: a whole number`) as string,
      });
    }
  });
  it.each([
    ['--port', '99999'],
    ['--port', '1.5'],
    ['--count', '1025'],
  ])('of `desktop serve` is bounded: %s %s', async (...wrong) => {
    for (const api of ['--osworld', '--openenv'])
      expect(await ran('desktop', 'serve', api, ...wrong)).toMatchObject({
        code: 2,
        err: expect.stringContaining(`${wrong.join(' ')}: a whole number from`) as string,
      });
  });
  it('that a page does not look at is refused', async () => {
    await emptyRun('a');
    const args = ['export', 'a', join(dir, 'a.html'), '--runs', dir, '--format', 'html'];
    expect(await ran(...args, '--outcome', 'success', '--family', 'f')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--outcome, --family: not beside --format html') as string,
    });
  });
  it('of the environment is looked at as soon as one that is typed', async () => {
    const { alertTargets } = await import('../../../runtime/cli/options.js');
    const env = (): NodeJS.ProcessEnv => ({ DART_STUDIO_ALERT_WEBHOOK: 'hooks.example' });
    expect(() => alertTargets({}, env())).toThrow('not a URL');
    // The runtime of a window starts all the same, and its first alert says what is wrong.
    expect(alertTargets({}, env(), 'as it is').webhook).toBe('hooks.example');
    expect(() => alertTargets({ alertWebhook: 'hooks.example' }, {}, 'as it is')).toThrow('not a URL');
  });
});

describe('`runs`', () => {
  it('`gc` says once that a rule is wrong, before any run', async () => {
    await emptyRun('a');
    await emptyRun('b');
    const { code, out, err } = await ran('runs', '--runs', dir, 'gc', '--retired-hours', 'abc');
    expect([code, out, err.match(/--retired-hours abc/g)]).toEqual([2, '', ['--retired-hours abc']]);
  });
  it('says of a folder that is not there, or is none, what it is', async () => {
    const none = join(dir, 'none'),
      file = join(dir, 'file');
    await writeFile(file, '');
    for (const [at, why] of [
      [none, 'is not there'],
      [file, 'cannot be read'],
    ] as const)
      for (const command of ['list', 'gc'])
        expect(await ran('runs', '--runs', at, command)).toMatchObject({
          code: 1,
          err: expect.stringContaining(why) as string,
        });
  });
  it('names an absolute path once where there is no run', async () => {
    const { err } = await ran('runs', 'show', join(dir, 'none'));
    expect(err).toContain(`(looked in ${join(dir, 'none')})`);
  });
  it('`show` has a line for imports, and no headings over nothing', async () => {
    await makeRun(join(dir, 'a'), [onePress]);
    const { out } = await ran('runs', '--runs', dir, 'show', 'a');
    expect(out).toContain('imports and demonstrations 1, experience pool 0');
    expect(out).not.toMatch(/evaluations|by family|planned/);
  });
});

describe('`tasks fetch`', () => {
  it('names invalid task files, and fails', async () => {
    const tasks = join(dir, 'tasks'),
      into = join(dir, 'mirror');
    await mkdir(tasks);
    await writeFile(join(tasks, 'bad.json'), '{');
    const { code, out, err } = await ran('tasks', 'fetch', tasks, '--into', into);
    expect([code, out, err]).toEqual([
      1,
      expect.stringContaining('invalid: 1 task file'),
      expect.stringContaining('bad.json'),
    ]);
    const { out: json } = await ran('tasks', 'fetch', tasks, '--into', into, '--json');
    expect(JSON.parse(json)).toMatchObject({ invalid: 1, failed: 0 });
  });
  it('refuses a folder without task files', async () => {
    await mkdir(join(dir, 'empty'));
    const { code, err } = await ran('tasks', 'fetch', join(dir, 'empty'), '--into', join(dir, 'mirror'));
    expect([code, err]).toEqual([1, expect.stringContaining('holds no task files')]);
  });
});

describe('a file that cannot be written', () => {
  it('is no fault of this program, and costs no desktop', async () => {
    const at = join(dir, 'none', 'now.png'),
      { code, err } = await ran('desktop', 'screenshot', at);
    expect([code, err]).toEqual([1, expect.stringMatching(/none cannot be written or read: ENOENT/)]);
    expect(err).not.toMatch(/report|    at /);
  });
});
