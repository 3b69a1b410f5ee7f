import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { engineHere } from '../../helpers/cluster/engine.js';
import { cli, cliJson, endAll, ensureBundle } from '../../helpers/run/cli.js';

/** What people type: what is wrong with it is said, and what there is is listed. */
const noLocal = await whyNoLocalDesktops(),
  engine = await engineHere();

let dir: string;
beforeAll(async () => {
  ensureBundle();
  dir = await mkdtemp(join(tmpdir(), 'dart-run-'));
});
afterEach(endAll);
afterAll(() => rm(dir, { recursive: true, force: true }));

describe('what is wrong is said', () => {
  it('a run file: every wrong key at once, and exit code 2', async () => {
    const file = join(dir, 'wrong.json'),
      into = join(dir, 'none');
    await writeFile(
      file,
      JSON.stringify({
        sed: 1,
        nam: 'x',
        desktops: { count: 'six', provder: 'local' },
        trainer: { batchGroup: 3, lr: -1 },
        curation: { pool: { reuseCap: 1.5 } },
      }),
    );
    const r = await cli('train', file, '--runs', into);
    expect(r.code).toBe(2);
    for (const says of [
      '"sed"; did you mean "seed"?',
      '"nam"; did you mean "name"?',
      'desktops.count: ',
      'desktops: unknown key "provder"; did you mean "provider"?',
      'trainer: unknown key "batchGroup"; did you mean "batchGroups"?',
      'trainer.lr: ',
      'curation.pool.reuseCap: ',
    ])
      expect(r.stderr).toContain(says);
    expect(existsSync(into)).toBe(false);
    await writeFile(file, '{\n  "seed": 1,\n  oops\n}');
    expect(await cli('train', file)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('wrong.json, line 3') as string,
    });
    await writeFile(file, JSON.stringify({ tasks: { families: ['press-button', 'pres-button'] } }));
    expect(await cli('train', file, '--runs', into)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('desk/pres-button') as string,
    });
    expect(existsSync(into)).toBe(false);
  });

  it('commands, options and runs that are not there', async () => {
    const says = async (code: number, text: string, ...args: string[]): Promise<void> =>
      expect(await cli(...args)).toMatchObject({ code, stderr: expect.stringContaining(text) as string });
    await says(2, 'unknown command', 'trian');
    await says(2, 'unknown option', 'train', '--preste', 'quickstart');
    await says(2, '--minutes soon', 'train', '--minutes', 'soon');
    await says(2, 'cannot be read', 'train', join(dir, 'nowhere.json'));
    for (const args of [
      ['runs', 'show', 'nix'],
      ['runs', 'export', 'nix', 'x.csv'],
      ['evaluate', 'nix'],
      ['train', '--resume', 'nix'],
    ])
      await says(1, "There is no run 'nix'", ...args, '--runs', dir);
    expect(await cli('runs', 'list', '--runs', join(dir, 'nowhere'))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is not there') as string,
    });
    // A run that cannot be read is there all the same.
    await mkdir(join(dir, 'damaged', 'a-run'), { recursive: true });
    await writeFile(join(dir, 'damaged', 'a-run', 'run.json'), '{');
    const listed = await cli('runs', 'list', '--runs', join(dir, 'damaged'));
    expect(listed.stdout).toMatch(/^a-run +cannot be read: .+\n$/);
    expect(await cliJson('runs', 'list', '--runs', join(dir, 'damaged'), '--json')).toMatchObject([
      { id: 'a-run', error: { message: expect.any(String) as string } },
    ]);
  });

  it('task files: which can run here, what the others need, which are invalid', async () => {
    const folder = join(dir, 'tasks');
    await mkdir(join(folder, 'os'), { recursive: true });
    const task = (name: string, apps: string[]): string =>
      JSON.stringify({ id: name, instruction: 'x', config: [], evaluator: { func: 'infeasible' }, related_apps: apps });
    await writeFile(join(folder, 'os', 'a.json'), task('a', ['os']));
    await writeFile(join(folder, 'b.json'), task('b', ['chrome']));
    await writeFile(join(folder, 'test_all.json'), JSON.stringify({ os: ['a'] }));
    expect(await cliJson('tasks', 'check', folder, '--json')).toEqual([
      { id: 'b', status: 'unsupported', needs: ['app:chrome'], runs: 'with', with: ['--image osworld'], why: [] },
      { id: 'a', status: 'runnable', needs: [], runs: 'here', with: ['our own evaluator'], why: [] },
    ]);
    await writeFile(join(folder, 'c.json'), JSON.stringify({ id: 'c' }));
    const r = await cli('tasks', 'check', folder);
    expect(r.code).toBe(1);
    expect(r.stdout).toContain('3 tasks: 1 runnable, 1 runnable with what they name, 0 not, 1 invalid');
    expect(r.stdout).toMatch(/c\.json +invalid: .*instruction/);
    expect((await cli('tasks', 'check', join(dir, 'nowhere'))).code).toBe(1);
  });

  it("the machine, the suite and the run file's schema", async () => {
    const doctor = await cli('doctor', '--json'),
      checks = JSON.parse(doctor.stdout) as { what: string; ok: boolean; needed: boolean; remedy?: string }[];
    expect(doctor.code).toBe(checks.some((c) => c.needed && !c.ok) ? 1 : 0);
    expect(checks.map((c) => c.what)).toEqual(
      expect.arrayContaining(['Node.js', 'ONNX Runtime', 'desktops: local', 'desktops: docker']),
    );
    expect(checks.find((c) => c.what === 'desktops: local')!.ok).toBe(noLocal === undefined);
    expect(checks.find((c) => c.what === 'desktops: docker')!.ok).toBe(engine !== undefined);
    for (const c of checks.filter((x) => !x.ok)) expect(c.remedy).toBeTruthy();
    const families = await cliJson<{ id: string }[]>('tasks', 'list', '--json');
    expect(families.map((f) => f.id)).toContain('desk/press-button');
    type Node = {
      type?: string;
      description?: string;
      properties?: Record<string, Node>;
      additionalProperties?: unknown;
    };
    const undescribed: string[] = [],
      open: string[] = [];
    const walk = (n: Node, at: string): void => {
      if (n.properties && n.additionalProperties !== false) open.push(at);
      for (const [k, v] of Object.entries(n.properties ?? {})) {
        if (!v.description && !['width', 'height'].includes(k)) undescribed.push(`${at}.${k}`);
        walk(v, `${at}.${k}`);
      }
    };
    walk(await cliJson<Node>('schema'), '');
    expect({ undescribed, open }).toEqual({ undescribed: [], open: [] });
  });
});
