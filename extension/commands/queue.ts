/** The queue of runs: several run files and seeds, one after another. */
import { window, type Uri } from 'vscode';
import * as methods from '../../runtime/protocol/methods.js';
import type { QueuedRun } from '../../runtime/protocol/types.js';
import { commands } from '../ids.js';
import { storeDirOf } from '../model/roots.js';
import { parseSeeds } from '../model/seeds.js';
import type { StudioContext } from '../studioContext.js';
import { showInputBox } from '../toasts.js';
import { nodeOf } from '../views/nodes.js';
import { t } from '../words.js';
import type { Actions } from './action.js';
import { choose, chooseMany } from './ask.js';
import { browseRunFiles, keepListed, paramsOf, runFiles } from './startTraining.js';

type Ids =
  | typeof commands.addToQueue
  | typeof commands.removeFromQueue
  | typeof commands.moveUpInQueue
  | typeof commands.moveDownInQueue
  | typeof commands.pauseQueue;

export const queueCommands = (s: StudioContext): Actions<Ids> => ({
  [commands.addToQueue]: { doing: t('add to the queue'), run: () => add(s) },
  [commands.removeFromQueue]: {
    doing: t('remove from the queue'),
    run: (arg) => change(s, arg, (id) => s.client.request(methods.removeFromQueue, { id })),
  },
  [commands.moveUpInQueue]: {
    doing: t('reorder the queue'),
    run: (arg) => change(s, arg, (id) => s.client.request(methods.moveInQueue, { id, by: -1 })),
  },
  [commands.moveDownInQueue]: {
    doing: t('reorder the queue'),
    run: (arg) => change(s, arg, (id) => s.client.request(methods.moveInQueue, { id, by: 1 })),
  },
  [commands.pauseQueue]: {
    doing: t('pause the queue'),
    run: async () => {
      await s.ensureRuntime();
      await s.client.request(methods.pauseQueue, { paused: !(s.model.queue?.paused ?? false) });
    },
  },
});

async function add(s: StudioContext): Promise<void> {
  s.requireTraining();
  const title = t('Add to Queue');
  const chosen = await chooseMany<Uri | 'browse'>(title, [
    ...(await runFiles()).map(({ uri, ...file }) => ({ ...file, picked: false, value: uri })),
    { label: `$(folder-opened) ${t('Another Run File…')}`, picked: false, value: 'browse' as const },
  ]);
  if (!chosen || chosen.length === 0) return;
  const picked = [
    ...chosen.filter((x) => x !== 'browse'),
    ...(chosen.includes('browse') ? await browseRunFiles(true) : []),
  ];
  if (picked.length === 0) return;
  const seeds = await showInputBox({
    ignoreFocusOut: true,
    title,
    prompt: t('Seeds, such as 1, 2, 5-8: one run for each. Empty: the seed of the run file'),
    validateInput: (v) => (parseSeeds(v) ? undefined : t('Enter whole numbers or ranges such as 5-8, at most 100.')),
  });
  const wanted = seeds === undefined ? undefined : parseSeeds(seeds);
  if (!wanted) return;
  const runs: QueuedRun[] = [];
  for (const uri of picked) {
    const { preset: _preset, text, ...params } = await paramsOf(s, { kind: 'file', uri });
    if (text === undefined) continue;
    if (wanted.length === 0) runs.push({ ...params, text });
    for (const seed of wanted) runs.push({ ...params, text, seed });
  }
  await s.ensureRuntime();
  await s.client.request(methods.addToQueue, { runs });
  // Their turn may come without a window.
  for (const { text, base } of runs) {
    const dir = storeDirOf(text, base);
    if (dir !== undefined) await keepListed(s, dir);
  }
  window.setStatusBarMessage(
    runs.length === 1 ? t('1 run was added to the queue') : t('{0} runs were added to the queue', runs.length),
    4000,
  );
}
async function change(s: StudioContext, arg: unknown, act: (id: string) => Promise<unknown>): Promise<void> {
  s.requireTraining();
  await s.ensureRuntime();
  const id =
    nodeOf(arg, 'queued')?.item.id ??
    (await choose(
      t('Queue'),
      (s.model.queue?.items ?? [])
        .filter((i) => i.state !== 'running')
        .map((i) => ({ label: i.name, description: i.seed === undefined ? '' : t('seed {0}', i.seed), value: i.id })),
    ));
  if (id !== undefined) await act(id);
}
