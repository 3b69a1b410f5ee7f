import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ran } from '../../helpers/run/ran.js';

const obeyed = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/u;
const hostile = 'x\x1b]52;c;aGk=\x07\x1b[1A\x1b[2K\x9b2J\u202e\nother  runnable';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'output-'));
});
afterEach(() => rm(dir, { recursive: true }));

const task = (more: object): string =>
  JSON.stringify({
    id: hostile,
    instruction: hostile,
    config: [],
    evaluator: { func: 'infeasible' },
    related_apps: ['os'],
    ...more,
  });

describe('`tasks check` on a folder of a stranger', () => {
  beforeEach(async () => {
    await writeFile(join(dir, 'a.json'), task({}));
    await writeFile(join(dir, 'b.json'), task({ evaluator: { func: hostile } }));
    await writeFile(join(dir, 'c\x1b[2J.json'), '{');
  });
  it('steers no terminal, and no task has a row of another', async () => {
    const { code, out, err } = await ran('tasks', 'check', dir);
    expect(code).toBe(1);
    expect(out + err).not.toMatch(obeyed);
    expect(out).toContain('52;c;');
    expect(out).not.toMatch(/^other/m);
  });
  it('says the same in JSON', async () => {
    const { out } = await ran('tasks', 'check', dir, '--json');
    expect(out).not.toMatch(obeyed);
    expect((JSON.parse(out) as { id: string }[]).map((r) => r.id)).toContain(hostile);
  });
});
it('an error steers no terminal', async () => {
  const { code, err } = await ran('tasks', 'check', join(dir, 'none\x1b[2J\x9b2J'));
  expect(code).toBe(1);
  expect(err).toContain('cannot be read');
  expect(err).not.toMatch(obeyed);
});
