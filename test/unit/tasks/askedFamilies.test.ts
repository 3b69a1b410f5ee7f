import { describe, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { deskSuite } from '../../../runtime/tasks/index.js';
import { openTasks } from '../../../runtime/tasks/open.js';
import { checkTasks } from '../../../runtime/service/runChecks/index.js';

const image = { apps: [], programs: [] },
  heldout = deskSuite()
    .families.filter((f) => f.split === 'heldout' && f.fresh !== true)
    .map((f) => f.id as string),
  of = (families: readonly string[]): ReturnType<typeof parseRunFile> =>
    parseRunFile({ tasks: { families: [...families] } });

describe('templates never trained on', () => {
  it('are those that an evaluation asks for, and no others', async () => {
    const { probesOf } = await openTasks(of([heldout[0]!]), image, undefined, { asked: true });
    expect(new Set(probesOf('templates', 20).map((p) => p.family))).toEqual(new Set([heldout[0]]));
    const trained = await openTasks(of(['desk/press-button']), image, undefined, { asked: true });
    expect(trained.probesOf('templates', 20)).toEqual([]);
  });
  it('are all of them where a run names what it trains', async () => {
    const { probesOf } = await openTasks(of(['desk/press-button']), image);
    expect(new Set(probesOf('templates', 1000).map((p) => p.family))).toEqual(new Set(heldout));
  });
});

describe('what `doctor --run` says of tasks', () => {
  const rows = async (file: Parameters<typeof parseRunFile>[0]): Promise<unknown> =>
    (await checkTasks(parseRunFile(file))).map(({ name, ok, level }) => ({ name, ok, level }));
  it('is what `train` says of them', async () => {
    const good = { name: 'tasks', ok: true, level: 'required' },
      bad = { ...good, ok: false };
    expect(await rows({})).toEqual([good]);
    expect(await rows({ tasks: { families: ['desk/nope'] } })).toEqual([bad]);
    expect(await rows({ tasks: { families: [] } })).toEqual([bad]);
    expect(await rows({ tasks: { suite: 'folder', dir: '/nowhere' } })).toEqual([bad]);
    expect(await rows({ warmStart: { from: '/nowhere' } })).toEqual([
      good,
      { name: 'warmStart.from', ok: false, level: 'required' },
    ]);
  });
});
