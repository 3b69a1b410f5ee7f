import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { DataManager } from '../../../runtime/data/dataManager.js';
import type { StoredEvent } from '../../../runtime/data/events.js';
import { byteOf, readJournal, segmentName, segmentOf, segments } from '../../../runtime/data/store/journalReader.js';
import type { RolloutOrder } from '../../../runtime/data/types.js';
import { resumedNote } from '../../../runtime/run/resume.js';
import { dataConfig, failure, makeTrajectory, openManager, success, withDir } from '../../helpers/data/manager.js';
import { group, n3, order } from '../../helpers/data/groups.js';

const config = dataConfig({ ...n3, staleness: { enabled: false }, pool: { enabled: false } });
const open = (dir: string): Promise<DataManager> => openManager(dir, config, { journal: { segmentBytes: 1500 } });

type Placed = StoredEvent & { readonly segment: number; readonly from: number; readonly to: number };
async function recordsOf(dir: string): Promise<Placed[]> {
  const out: Placed[] = [];
  for await (const batch of readJournal(join(dir, 'journal')))
    for (const e of batch)
      out.push({
        ...(e.event() as StoredEvent),
        seq: e.seq,
        segment: segmentOf(e.position),
        from: byteOf(e.position),
        to: byteOf(e.next),
      });
  return out;
}

interface Made {
  readonly dir: string;
  readonly records: readonly Placed[];
  readonly trained: readonly RolloutOrder[];
  readonly waiting: readonly (readonly RolloutOrder[])[];
  /** Accepted, of a group that lacks two. */
  readonly accepted: RolloutOrder;
  /** Running on the desktop on which `accepted` ended; none where desktops are not named. */
  readonly next?: RolloutOrder | undefined;
}
/** A run that was killed: a group is trained, two wait, and of a fourth one rollout has been accepted. */
async function killedRun(dir: string, desktop?: string): Promise<Made> {
  const m = await open(dir),
    { orders: trained } = await group(m, [success, failure, failure]),
    batch = (await m.claimBatch({ version: 0 }))!;
  await m.trained(batch.id, 1, undefined, '/checkpoints/v1');
  const waiting = [];
  for (let i = 0; i < 2; i++) waiting.push((await group(m, [success, failure, failure], [], 1)).orders);
  const accepted = await order(m);
  await m.started(accepted.rollout, 1, desktop);
  const t = makeTrajectory(accepted, success, { steps: 3, version: 1 });
  for (const s of t.steps) await m.recordStep(accepted.rollout, s);
  await m.record(t);
  const next = desktop === undefined ? undefined : await order(m);
  if (next) await m.started(next.rollout, 1, desktop);
  for (let i = 0; i < 4; i++) await m.note({ type: 'log', level: 'info', message: 'x'.repeat(800) });
  await m.store.close(); // as if killed: nothing says that it ended
  return { dir, records: await recordsOf(dir), trained, waiting, accepted, next };
}

const stepOf = (o: RolloutOrder) => (e: StoredEvent) =>
  e.type === 'rollout.step' && e.rollout === o.rollout && e.step.index === 0;
const headOf = (o: RolloutOrder) => (e: StoredEvent) => e.type === 'trajectory.recorded' && e.head.id === o.rollout;

/** The run with one flipped bit in the record that fits, as it is when it has been opened again. */
async function damaged(made: Made, copy: string, fits: (e: StoredEvent) => boolean, index: boolean) {
  await cp(made.dir, copy, { recursive: true });
  if (!index) await rm(join(copy, 'index.sqlite'));
  const bad = made.records.find(fits)!,
    file = join(copy, 'journal', segmentName(bad.segment)),
    bytes = await readFile(file);
  // In the middle of the record, of a segment that was closed long ago.
  expect(bad.segment).toBeLessThan((await segments(join(copy, 'journal'))).at(-1)!);
  bytes[Math.floor((bad.from + bad.to) / 2)]! ^= 4;
  await writeFile(file, bytes);
  const m = await open(copy),
    { damage, missing } = m.store.recovery;
  // What is damaged is that record, and all others are read.
  expect(missing).toBe(1);
  expect(damage).toEqual([{ segment: bad.segment, from: bad.from, to: bad.to, tail: false }]);
  const records = await recordsOf(copy);
  expect(records.slice(0, made.records.length - 1)).toEqual(made.records.filter((e) => e.seq !== bad.seq));
  const gone = records.slice(made.records.length - 1).flatMap((e) => {
    if (e.type === 'rollout.retired') return [{ rollouts: [e.rollout], reason: e.reason, cause: e.cause }];
    return e.type === 'group.retired' ? [{ rollouts: e.rollouts, reason: e.reason, cause: e.cause }] : [];
  });
  return { m, gone };
}
/** What it claims next, with every token: groups that wait are as they were. */
const claimed = async (m: DataManager): Promise<unknown> => (await m.claimBatch({ version: 1, maxGroups: 9 }))?.groups;
function closes(m: DataManager): void {
  const { generated, trained, inFlight, retired } = m.stats().ledger;
  expect(generated).toBe(trained + inFlight + Object.values(retired).reduce((a, n) => a + n, 0));
}

describe.each([
  { told: 'an index from before the damage', index: true },
  { told: 'no index', index: false },
])('one damaged record in the middle of a closed segment, with $told', ({ index }) => {
  it('a step of an accepted rollout costs that rollout, and its group asks for another', () =>
    withDir(async (dir) => {
      const made = await killedRun(join(dir, 'whole')),
        { accepted, waiting } = made,
        { m, gone } = await damaged(made, join(dir, 'copy'), stepOf(accepted), index);
      expect(gone).toEqual([{ rollouts: [accepted.rollout], reason: 'lost', cause: 'corrupt' }]);
      expect(m.recovery).toMatchObject({ unreadable: [accepted.rollout], lost: [], skipped: 0 });
      // What the run's log says.
      expect(resumedNote(m.recovery, m.store.recovery)).toMatch(
        new RegExp(`damaged in 1 places .* cannot be read back: ${accepted.rollout}\\. .* lost \\(corrupt\\)\\.$`),
      );
      expect(m.stats().ledger).toMatchObject({ retired: { lost: 1 }, trained: 3, byState: { grouped: 6 } });
      closes(m);
      for (let i = 0; i < 3; i++) expect((await order(m)).group).toBe(accepted.group);
      expect(await claimed(m)).toMatchObject(waiting.map(([o]) => ({ id: o!.group })));
      await m.close();
    }));

  it.each([
    { record: 'a step', of: stepOf },
    { record: 'the record', of: headOf },
  ])('$record of a rollout of a waiting group costs that group, and no other', ({ of }) =>
    withDir(async (dir) => {
      const made = await killedRun(join(dir, 'whole')),
        [lost, kept] = made.waiting,
        { m, gone } = await damaged(made, join(dir, 'copy'), of(lost![1]!), index);
      expect(gone).toEqual([{ rollouts: lost!.map((o) => o.rollout), reason: 'lost', cause: 'corrupt' }]);
      expect(m.recovery).toMatchObject({ unreadable: [lost![1]!.rollout], lost: [] });
      expect(m.stats().ledger).toMatchObject({
        retired: { lost: 3 },
        trained: 3,
        byState: { grouped: 3, recorded: 1 },
      });
      closes(m);
      expect(await claimed(m)).toMatchObject([{ id: kept![0]!.group }]);
      await m.close();
    }),
  );

  it('a step of what is trained already costs nothing', () =>
    withDir(async (dir) => {
      const made = await killedRun(join(dir, 'whole')),
        { m, gone } = await damaged(made, join(dir, 'copy'), stepOf(made.trained[0]!), index);
      expect(gone).toEqual([]);
      expect(m.recovery).toMatchObject({ unreadable: [], lost: [] });
      expect(m.stats().ledger).toMatchObject({ trained: 3, byState: { grouped: 6, recorded: 1 } });
      closes(m);
      await m.close();
    }));

  it('the record that an accepted rollout has ended makes it one that was cut short: it alone is lost', () =>
    withDir(async (dir) => {
      const made = await killedRun(join(dir, 'whole')),
        { accepted } = made,
        { m, gone } = await damaged(made, join(dir, 'copy'), headOf(accepted), index);
      // Nothing else on disk says that it had ended: its desktop began nothing after it.
      expect(gone).toEqual([{ rollouts: [accepted.rollout], reason: 'lost', cause: undefined }]);
      expect(m.recovery).toMatchObject({ unreadable: [], lost: [accepted.rollout] });
      expect(m.stats().ledger).toMatchObject({ retired: { lost: 1 }, trained: 3, byState: { grouped: 6 } });
      closes(m);
      await m.close();
    }));

  it('the record that a rollout has ended is known to be damaged where its desktop began another one', () =>
    withDir(async (dir) => {
      const made = await killedRun(join(dir, 'whole'), 'desktop-1'),
        { accepted, next } = made,
        { m, gone } = await damaged(made, join(dir, 'copy'), headOf(accepted), index);
      expect(gone).toEqual([
        { rollouts: [accepted.rollout], reason: 'lost', cause: 'corrupt' },
        { rollouts: [next!.rollout], reason: 'lost', cause: undefined },
      ]);
      expect(m.recovery.lost).toEqual([accepted.rollout, next!.rollout]);
      expect(m.recovery.corrupt).toEqual([accepted.rollout]);
      expect(resumedNote(m.recovery, m.store.recovery)).toContain(
        `The ends of these rollouts are in what is damaged: ${accepted.rollout}. They are retired as lost (corrupt).`,
      );
      closes(m);
      await m.close();
    }));

  it('damage elsewhere says nothing of what was cut short', () =>
    withDir(async (dir) => {
      const made = await killedRun(join(dir, 'whole'), 'desktop-1'),
        { m, gone } = await damaged(made, join(dir, 'copy'), stepOf(made.trained[0]!), index);
      expect(gone).toEqual([{ rollouts: [made.next!.rollout], reason: 'lost', cause: undefined }]);
      await m.close();
    }));
});
