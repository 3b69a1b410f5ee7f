import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Action } from '../../../runtime/domain/index.js';
import { exportRun } from '../../../runtime/interchange/exporter.js';
import { exportFormats } from '../../../runtime/interchange/types.js';
import { recordedView } from '../../../runtime/service/recordedView.js';
import { importedOf, inFolder, makeRun, success, uiTarsFile } from '../../helpers/interchange/make.js';
import { look, take } from '../../helpers/interchange/take.js';

const click: Action = { type: 'click', at: { x: 30, y: 40 } },
  end: Action = { type: 'finished', answer: 'ok' },
  leftOut = { 'what follows its end (in step 1) was left out': 1 };

/** A trajectory whose last step says more after its end, as models may in one answer. */
test.each(exportFormats.filter((f) => f !== 'openai'))('%s: a step is read up to its end', (format) =>
  inFolder(async (dir) => {
    await makeRun(join(dir, 'a'), [
      {
        task: 't',
        family: 'f',
        instruction: 'do it',
        outcome: success,
        steps: [
          { screen: 1, actions: [click] },
          { screen: 2, actions: [click, end, click, end] },
        ],
      },
    ]);
    const to = join(dir, 'out'),
      { problems } = await exportRun(
        { run: join(dir, 'a'), to, format, options: { coordinates: 'qwen25' } },
        recordedView,
      );
    expect(problems).toEqual([]);
    expect(await look(to)).toMatchObject({ trajectories: 1, problemCount: 0, notes: leftOut });
    expect(await take(dir, to)).toMatchObject({ imported: 1, pooled: 1, problemCount: 0, notes: leftOut });
    const [t] = await importedOf(join(dir, 'run'));
    expect(t!.steps.map((s) => s.actions.map((a) => a.type))).toEqual([['click'], ['click', 'finished']]);
    expect(t).toMatchObject({ outcome: success, task: 't' });
  }),
);

test('ui-tars: a step is read up to its end', () =>
  inFolder(async (dir) => {
    const value = "Action: finished(content='ok')\n\nclick(start_box='(5,5)')";
    await uiTarsFile(join(dir, 's', 'a.json'), [{ value }]);
    expect(await take(dir, join(dir, 's'), { verdict: 'success', coordinates: 'absolute' })).toMatchObject({
      imported: 1,
      problemCount: 0,
      notes: { 'what follows its end (in step 0) was left out': 1 },
    });
    const [t] = await importedOf(join(dir, 'run'));
    expect(t!.steps.map((s) => s.actions)).toEqual([[end]]);
  }));
