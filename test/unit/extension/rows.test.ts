import { describe, expect, it } from 'vitest';
import { desktopRow, moreRow, taskRow, trajectoryRow } from '../../../extension/views/rows.js';
import { evalRow, runRow, startedWords } from '../../../extension/views/runRows.js';
import { plain, span, spark } from '../../../extension/words.js';
import { desktop, evalPoint, run, status, task, trajectory } from '../../helpers/extension/rows.js';

describe('words of numbers', () => {
  it('draws rolling rates as bars, the newest last', () => {
    expect(spark([0, 0.5, 1])).toBe('▁▅█');
    expect(spark([1, 1, 0, 0], 2)).toBe('▁▁');
    expect(spark([-1, 7])).toBe('▁█');
  });
  it('says spans in the largest unit that fits', () => {
    expect([span(900), span(59_000), span(61_000), span(3_600_000), span(7_400_000)]).toEqual([
      '1 s',
      '59 s',
      '1 min',
      '1 h',
      '2 h 3 min',
    ]);
    const hour = 3_600_000;
    expect([span(47 * hour), span(48 * hour), span(2 * 24 * hour + 5.5 * hour), span(90 * 24 * hour)]).toEqual([
      '47 h',
      '2 d',
      '2 d 5 h',
      '90 d',
    ]);
  });
  it('lets no instruction become markup', () => {
    expect(plain('[x](command:evil) `a` $(bug)\n<b>')).toBe('\\[x\\]\\(command:evil\\) \\`a\\` \\$\\(bug\\) \\<b\\>');
  });
});

describe('runs', () => {
  const at = { selected: false, now: 61_000 };
  it('name the year in which they were started where it is another one', () => {
    const r = run({ createdAt: new Date(2025, 10, 22).getTime() });
    expect(startedWords(r, new Date(2025, 11, 31).getTime())).not.toContain('2025');
    expect(startedWords(r, new Date(2026, 0, 1).getTime())).toContain('2025');
  });
  it('a live run shows success, rate and the trend of its evaluations', () => {
    const r = runRow(run({ status: status() }), at);
    expect(r).toMatchObject({
      label: 'quickstart',
      context: 'run.running',
      icon: { id: 'pulse' },
      spoken: 'quickstart, running, last 64 rollouts 63 %, 120 rollouts',
    });
    expect(r.description).toBe('last 64 rollouts 63 % · 119 rollouts/h · ▂▅▇');
    expect(r.tooltip).toContain('Training continues when VS Code is closed.');
  });
  it('while its runtime is sought, a live run is interrupted, and has no rate', () => {
    const r = runRow(run({ status: status() }), { ...at, unreachable: true });
    expect(r).toMatchObject({
      icon: { id: 'debug-disconnect' },
      spoken: 'quickstart, interrupted, reconnecting, last 64 rollouts 63 %, 120 rollouts',
    });
    expect(r.description).toBe('last 64 rollouts 63 % · interrupted, reconnecting · ▂▅▇');
    expect(r.tooltip).toContain('interrupted, reconnecting');
    expect(r.tooltip).not.toMatch(/running|goes on/);
  });
  it('before training its phase is shown', () => {
    expect(
      runRow(run({ evals: [], status: status({ phase: 'warm start', success: undefined }) }), at).description,
    ).toBe('warm start · 119 rollouts/h');
  });
  it('the newest evaluation counts more than training rollouts', () => {
    expect(runRow(run({ state: 'finished', lastEval: evalPoint(), status: status() }), at).description).toMatch(
      /^evaluation 75 % · finished/,
    );
  });
  it('a damaged run says what to do', () => {
    const r = runRow(
      run({
        state: 'stopped',
        damaged: { kind: 'store.damaged', message: 'The journal ends early.', remedy: 'Restore it.' },
      }),
      at,
    );
    expect(r).toMatchObject({ context: 'run.damaged', icon: { id: 'warning' } });
    expect(r.tooltip).toContain('Restore it');
  });
  it('runs of one name are told apart by when they were begun and by their seed', () => {
    const words = (createdAt: number, seed: number): string =>
      runRow(run({ state: 'finished', createdAt, seed }), { ...at, namesake: true }).description;
    const day = 86_400_000;
    expect(new Set([words(day, 1), words(3 * day, 1), words(day, 2)]).size).toBe(3);
    expect(words(day, 2)).toContain('seed 2');
    expect(runRow(run({ state: 'finished', seed: 2 }), at).description).not.toContain('seed');
  });
  it('a collection has a context of its own, without resume and evaluation', () => {
    const r = runRow(run({ state: 'stopped', collection: true, evals: [] }), at);
    expect([r.context, r.description]).toEqual(['run.collection', 'collection']);
  });
  it('a run without a checkpoint is neither resumed nor evaluated', () => {
    const r = runRow(run({ state: 'finished', weightless: true, evals: [] }), at);
    expect(r.context).toBe('run.weightless');
    expect(r.tooltip).toContain('None of its checkpoints is left');
    expect(runRow(run({ state: 'finished', evals: [] }), at).context).toBe('run.over');
  });
  it('damage of the journal is seen in the row', () => {
    const r = runRow(run({ state: 'finished', evals: [], damage: { bytes: 4000, stretches: 1 } }), at);
    expect(r.icon.id).toBe('warning');
    expect(r.description).toContain('journal damaged');
    expect(r.tooltip).toContain('4000 bytes');
  });
  it('a run that nobody has read yet claims nothing', () => {
    const r = runRow({ ...run({ state: 'stopped', evals: [] }), unread: true }, at);
    expect([r.description, r.tooltip.includes('0 rollouts'), r.context]).toEqual(['not read', false, 'run.over']);
  });
  it('only runs that can be resumed are `over`', () => {
    expect(
      (['finished', 'stopped', 'failed', 'interrupted'] as const).map((state) => runRow(run({ state }), at).context),
    ).toEqual(Array(4).fill('run.over'));
    expect(runRow(run({ state: 'elsewhere' }), at).context).toBe('run.elsewhere');
  });
  it('keeps its id whatever happens to it', () => {
    expect(runRow(run({ state: 'paused' }), at).id).toBe(runRow(run({ rollouts: 999, status: status() }), at).id);
  });
});

it('an evaluation without episodes has no rate', () => {
  expect(evalRow('/r', evalPoint({ episodes: 0, successes: 0 }), 0).description).toBe('0 of 0 · version 7');
});
it('a task shows its rate and what it is of, group size, step limit and trend', () => {
  expect(taskRow(task({ rate: 0.75, recent: 16, groupSize: 5, cap: 8 })).description).toBe(
    'last 16 rollouts 75 % · 5 per group · max 8 steps · ▁▅█',
  );
  const evaluation = { version: 9, episodes: 5, successes: 1, rate: 0.2, low: 0.04, high: 0.62 },
    judged = taskRow(task({ rate: 1, recent: 16, evaluation, spark: [] }));
  // 16 of 16 in training is not green where the evaluation says 20 %.
  expect([judged.description, judged.icon.color]).toEqual([
    'evaluation 20 % (4 % to 62 %) · last 16 rollouts 100 %',
    'charts.red',
  ]);
  expect(taskRow(task({ spark: [], heldOut: true })).description).toBe('– · held out');
  const external = taskRow(task({ spark: [], external: true, rollouts: 4, successes: 3, rate: 0.75 }));
  expect([external.description, external.tooltip.includes('3 of 4 trajectories succeeded')]).toEqual([
    '75 % · 3 of 4',
    true,
  ]);
});
it('a desktop shows state, task, step and version', () => {
  const d = desktopRow(
    desktop({ state: 'decide', task: 'desk/form-one#5', step: 2, cap: 8, version: 4, rollout: 'r' }),
  );
  expect(d.description).toBe('deciding · desk/form-one#5 · step 3 of 8 · v4');
  expect(d.context).toBe('desktop.busy');
  expect(d.spoken).toBe('Desktop local-1, deciding, desk/form-one#5, step 3 of 8, policy version 4');
});
it('a trajectory shows its outcome as an icon and in words', () => {
  const r = trajectoryRow('/r', trajectory({ outcome: 'failure', versions: [3, 4], tags: ['odd'], reward: 0 }));
  expect(r).toMatchObject({
    icon: { id: 'circle-slash' },
    context: 'trajectory.failure',
    description: '3 steps · v3 to 4 · #odd',
  });
  expect(r.spoken).toContain('failure');
  expect(trajectoryRow('/r', trajectory({ provenance: 'probe', versions: [3, 3] })).description).toBe(
    '3 steps · v3 · evaluation',
  );
});
it('a partial score is said with the outcome: it is no plain failure', () => {
  const r = trajectoryRow('/r', trajectory({ outcome: 'failure', reward: 0.7 }));
  expect([r.description, r.spoken]).toEqual(['score 0.7 · 3 steps', `${r.label}, failure, score 0.7, 3 steps`]);
  expect(r.tooltip).toContain('failure, score 0.7');
  expect(r.tooltip).not.toContain('reward');
  expect(r.icon.id).toBe('circle-slash');
});
it('a task says mean scores, and its applications as people call them', () => {
  const evaluation = { version: 9, episodes: 5, successes: 1, rate: 0.2, low: 0.04, high: 0.62, score: 0.456 },
    { tooltip } = taskRow(task({ evaluation, score: 0.8, apps: ['vs_code', 'calc', 'os'] }));
  expect(tooltip).toContain('VS Code, LibreOffice Calc, Operating system');
  expect(tooltip).toContain('30 of 40 rollouts succeeded · mean score 0.80');
  expect(tooltip).toContain('62 % · mean score 0.46');
});
it('nothing that a run folder says becomes markup of a tooltip', () => {
  const evil = '[x](command:evil) $(bug) <b>',
    { tooltip } = trajectoryRow(
      '/r',
      trajectory({
        outcome: 'error',
        errorKind: evil,
        task: evil,
        rollout: evil,
        instruction: evil,
        group: evil,
        state: evil,
        tags: [evil],
      } as never),
    );
  expect(tooltip).not.toMatch(/[^\\][[<$]/);
  expect(runRow(run({ run: `/runs/a\`\n${evil}` }), { selected: false, now: 0 }).tooltip).not.toContain('\n[x]');
});
it('the row of the next page says how much is shown', () => {
  expect(moreRow(100, 2300).description).toBe('100 of 2300 shown');
});
it('one step is not "1 steps"', () => {
  expect(trajectoryRow('/r', trajectory({ steps: 1 })).description).toBe('1 step');
});
