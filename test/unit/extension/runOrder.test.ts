import fc from 'fast-check';
import { expect, it } from 'vitest';
import { arranged, groupsOf, isGroup, parseTags } from '../../../extension/model/runOrder.js';
import { savedRuns } from '../../../extension/model/savedRuns.js';
import { runGroupRow, runRow } from '../../../extension/views/runRows.js';
import { runLabelOf, type RunLabel } from '../../../runtime/protocol/runLabel.js';
import type { RunState } from '../../../runtime/protocol/types.js';

const run = (name: string, label?: RunLabel, state: RunState = 'finished') => ({
  run: `/runs/${name}`,
  id: name,
  name,
  createdAt: 0,
  state,
  rollouts: 0,
  version: 0,
  evals: [],
  ...(label ? { label } : {}),
});
const told = (all: ReturnType<typeof arranged>): string[] =>
  all.map((x) => (isGroup(x) ? `${x.group}(${x.runs.map((r) => r.name).join()})` : x.name));

it('pinned runs come first, groups next, archived ones only when asked for; one under way is never hidden', () => {
  const runs = [
    run('new'),
    run('b1', { group: 'sweep b' }),
    run('put away', { archived: true }),
    run('a1', { group: 'sweep a' }),
    run('star', { pinned: true, group: 'sweep a' }),
    run('b2', { group: 'sweep b' }),
    run('live', { archived: true }, 'running'),
  ];
  expect(told(arranged(runs, false))).toEqual(['star', 'sweep a(a1)', 'sweep b(b1,b2)', 'new', 'live']);
  expect(told(arranged(runs, true))).toEqual(['star', 'sweep a(a1)', 'sweep b(b1,b2)', 'new', 'put away', 'live']);
  expect(groupsOf(runs)).toEqual(['sweep a', 'sweep b']);
});
it('no run is lost or listed twice', () => {
  const label = fc.record(
    { pinned: fc.boolean(), archived: fc.boolean(), group: fc.constantFrom('a', 'b') },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.array(label), (labels) => {
      const runs = labels.map((l, i) => run(String(i), runLabelOf(l))),
        flat = arranged(runs, true).flatMap((x) => (isGroup(x) ? x.runs : [x]));
      expect(flat.map((r) => r.name).sort()).toEqual(runs.map((r) => r.name).sort());
    }),
  );
});
it('anything at all in the file is a label or nothing, and a label stays what it is', () => {
  fc.assert(
    fc.property(fc.anything(), (x) => {
      const l = runLabelOf(x);
      expect(runLabelOf(JSON.parse(JSON.stringify(l)))).toEqual(l);
    }),
  );
  expect(
    runLabelOf({
      name: '  Two heads ',
      notes: 'x'.repeat(9000),
      tags: ['#a', 'a', 'b', 7],
      pinned: 'yes',
      archived: true,
    }),
  ).toEqual({ name: 'Two heads', notes: 'x'.repeat(4000), tags: ['a', 'b'], archived: true });
  expect(parseTags('one, #two  three,')).toEqual(['one', 'two', 'three']);
});
it('a run listed from its folder has the name and the marks that people gave it', async () => {
  const files: Readonly<Record<string, string>> = {
    '/runs/x/run.json': JSON.stringify({ id: 'x', createdAt: 5, name: 'quickstart' }),
    '/runs/x/label.json': JSON.stringify({ name: 'Two heads', tags: ['paper'], pinned: true, notes: 'lr halved' }),
    '/runs/y/run.json': JSON.stringify({ id: 'y', createdAt: 4, name: 'quickstart' }),
    '/runs/y/label.json': '{ broken',
  };
  const listed = await savedRuns(['/runs'], {
    list: () => Promise.resolve(['x', 'y']),
    read: (f) => Promise.resolve(files[f]),
  });
  expect(listed.map((r) => [r.name, r.label?.tags])).toEqual([
    ['Two heads', ['paper']],
    ['quickstart', undefined],
  ]);
  const row = runRow(listed[0]!, { selected: false, now: 10 });
  expect(row.label).toBe('Two heads');
  expect(row.description).toContain('pinned');
  expect(row.description).toContain('#paper');
  expect(row.tooltip).toContain('lr halved');
  expect(runGroupRow('sweep', 3).description).toBe('3 runs');
});
