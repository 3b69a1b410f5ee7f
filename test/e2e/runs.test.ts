import { join } from 'node:path';
import { afterAll, beforeAll, describe } from 'vitest';
import { Cockpit } from '../helpers/workbench/cockpit.js';
import { flowIn, Given } from '../helpers/workbench/given.js';
import { whyNoWorkbench } from '../helpers/workbench/rig.js';
import { damageJournal, writeBrokenRun, writeTrainedRun } from '../helpers/workbench/runFolders.js';
import { flowsOfPages } from './cockpitRuns/pages.js';
import { RunsWindow } from './cockpitRuns/window.js';
import { flowsOfWork } from './cockpitRuns/work.js';

/**
 * Runs that are over, as an engineer looks at them: no desktop is needed and nothing is trained. One window on a
 * workspace with prepared run folders for all flows.
 */
const missing = whyNoWorkbench('latest');
if (missing) console.warn(`skipped: finished runs in VS Code (${missing})`);

const begin = Date.UTC(2026, 10, 16, 9),
  day = 24 * 3_600_000;

describe.skipIf(missing !== undefined)('VS Code, current, finished runs', () => {
  let c: Cockpit, given: Given, runs: RunsWindow;
  beforeAll(async () => {
    c = await Cockpit.start({
      which: 'latest',
      files: {
        'first.dart-run.json': JSON.stringify({ name: 'first', tasks: { families: ['press-button'] } }),
        'wrong.json': JSON.stringify(
          { $schema: 'dart-studio:/run.schema.json', desktops: { count: 'two' }, trainer: { lr: -1 } },
          null,
          2,
        ),
      },
      prepare: async (folder) => {
        const runs = join(folder, 'runs');
        await Promise.all([
          writeTrainedRun(join(runs, 'trained-3'), { name: 'trained', seed: 3, lr: 7e-4, begin }),
          writeTrainedRun(join(runs, 'trained-4'), { name: 'trained', seed: 4, lr: 1e-3, begin: begin + day }),
          writeTrainedRun(join(runs, 'spoiled-5'), { name: 'spoiled', seed: 5, lr: 5e-4, begin: begin - day }),
          writeBrokenRun(join(runs, 'broken')),
        ]);
        await damageJournal(join(runs, 'spoiled-5'), 4000);
      },
    });
    given = new Given(c, 'trained');
    runs = new RunsWindow(c, given);
  });
  afterAll(() => c?.stop());
  const flow = flowIn(
    () => given,
    (name) => c.picture(name),
  );
  flowsOfPages(flow, () => runs);
  flowsOfWork(flow, () => runs);
});
