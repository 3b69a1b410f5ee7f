import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { PngFrameStore } from '../../../runtime/data/store/frames.js';
import { RunStore } from '../../../runtime/data/store/runStore.js';
import * as m from '../../../runtime/protocol/methods.js';
import type {
  AnnotationOp,
  AnnotationView,
  ReviewQueue,
  TrajectoryRow,
  TrajectoryView,
} from '../../../runtime/protocol/types.js';
import { readAnnotations } from '../../../runtime/annotations/read.js';
import { createStudioService, type Broadcast, type StudioService } from '../../../runtime/service/index.js';
import { bundle } from '../../helpers/data/manager.js';
import { writeSyntheticRun, type SyntheticRun } from '../../helpers/data/syntheticRun.js';

/** Annotations through the service, over real run folders; no desktops. */
let dir: string,
  template: string,
  entry: { file: string },
  child: string,
  truth: SyntheticRun,
  n = 0;
const open: StudioService[] = [],
  children: ChildProcess[] = [];
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-annotate-'));
  entry = await bundle('runtime/main.ts', 'runtime');
  child = (await bundle('test/helpers/annotations/serviceChild.ts', 'annotateChild')).file;
  template = join(dir, 'template');
  const { hash } = await new PngFrameStore(join(template, 'frames')).put({
    width: 640,
    height: 400,
    data: Buffer.alloc(640 * 400 * 4, 100),
    capturedAt: 0,
  });
  truth = await writeSyntheticRun(template, { groups: 6, size: 4, steps: 4, close: 'finished', frame: () => hash });
});
afterEach(async () => {
  for (const c of children.splice(0)) c.kill('SIGKILL');
  for (const s of open.splice(0)) await s.close({ now: true });
});
afterAll(() => rm(dir, { recursive: true, force: true }));

interface Client {
  readonly service: StudioService;
  readonly told: Broadcast[];
  readonly log: string[];
  call<R>(method: { readonly method: string }, params: unknown): Promise<R>;
  edit(rollout: string, base: number, ...ops: AnnotationOp[]): Promise<AnnotationView>;
  get(rollout: string): Promise<AnnotationView>;
}
function client(run: string): Client {
  const log: string[] = [],
    service = createStudioService({
      entry,
      cacheDir: join(dir, 'cache'),
      log: (_l, t) => {
        log.push(t);
      },
    }),
    told: Broadcast[] = [];
  open.push(service);
  service.onBroadcast((b) => {
    told.push(b);
  });
  const call = async <R>(method: { readonly method: string }, params: unknown): Promise<R> =>
    service.handlers.get(method.method)!(params, {
      signal: new AbortController().signal,
      notify: () => undefined,
    }) as Promise<R>;
  return {
    service,
    told,
    log,
    call,
    edit: (rollout, base, ...ops) => call(m.editAnnotations, { run, rollout, base, ops }),
    get: (rollout) => call(m.getAnnotations, { run, rollout }),
  };
}
const fresh = async (): Promise<string> => {
  const run = join(dir, `run${n++}`);
  await cp(template, run, { recursive: true });
  return run;
};
const failure = (): string => truth.told.find((t) => t.outcome === 'failure' && t.steps >= 4)!.id;
const journalOf = async (run: string): Promise<Buffer[]> =>
  Promise.all((await readdir(join(run, 'journal'))).sort().map((f) => readFile(join(run, 'journal', f))));

describe('annotations through the service', () => {
  it('are on disk when answered, told to every window, seen by the next service and undone again; the recording is not touched', async () => {
    const run = await fresh(),
      r = failure(),
      bytes = await journalOf(run),
      s = client(run),
      recorded = await s.call<TrajectoryView>(m.getTrajectory, { run, rollout: r });
    expect(await s.get(r)).toMatchObject({ revision: 0, tags: [], parts: [], trajectory: { row: recorded.row } });
    expect(await readdir(run)).not.toContain('annotations');
    const v = await s.edit(
      r,
      0,
      { op: 'tags', tags: ['odd'] },
      { op: 'action', step: 0, action: 0, value: { type: 'click', at: { x: 5, y: 6 } } },
      { op: 'delete', steps: [1] },
    );
    expect([v.revision, v.changed, v.deleted, v.trajectory.steps[0]!.actions, v.locked]).toEqual([
      1,
      [0],
      [1],
      [{ type: 'click', at: { x: 5, y: 6 } }],
      undefined,
    ]);
    expect(s.told).toEqual([{ method: 'annotation/changed', params: { run, rollout: r, revision: 1 } }]);
    // Another process reads them from disk, while this one has them open.
    expect((await readAnnotations(run)).get(r)).toMatchObject({ tags: ['odd'], deleted: [1] });
    await s.service.close({ now: false });
    const next = client(run),
      again = await next.get(r);
    expect(again).toEqual(v);
    expect(await next.call(m.undoAnnotation, { run, rollout: r })).toMatchObject({
      revision: 0,
      deleted: [],
      trajectory: { steps: recorded.steps, row: recorded.row },
    });
    expect(await next.call(m.undoAnnotation, { run, rollout: r })).toMatchObject({ revision: 0 });
    expect(await next.call(m.redoAnnotation, { run, rollout: r })).toEqual(v);
    expect(await journalOf(run)).toEqual(bytes);
    expect(await next.call(m.getTrajectory, { run, rollout: r })).toEqual({
      ...recorded,
      row: { ...recorded.row, annotated: { revision: 1, tags: ['odd'], edited: true } },
    });
  });

  it('of two windows do not overwrite each other', async () => {
    const run = await fresh(),
      r = failure(),
      s = client(run);
    const both = await Promise.allSettled([
      s.edit(r, 0, { op: 'note', text: 'one' }),
      s.edit(r, 0, { op: 'note', text: 'two' }),
    ]);
    expect(both.map((b) => b.status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(both.find((b) => b.status === 'rejected')).toMatchObject({
      reason: { kind: 'busy', message: expect.stringContaining('the current one is revision 1') as string },
    });
    // Edits of different trajectories do not get in each other's way.
    const others = truth.told.filter((t) => t.outcome !== 'running').map((t) => t.id);
    await Promise.all(others.filter((o) => o !== r).map((o) => s.edit(o, 0, { op: 'reviewed', value: true })));
    expect((await readAnnotations(run)).size).toBe(others.length);
  });

  it('refuse what cannot be, and leave nothing behind', async () => {
    const run = await fresh(),
      r = failure(),
      s = client(run);
    for (const ops of [
      [],
      [{ op: 'bogus' }],
      [{ op: 'mark', step: 1.5, mark: 'key', on: true }],
      [{ op: 'tags', tags: ['a\nb'] }],
      [{ op: 'note', text: 'x'.repeat(20_001) }],
      [{ op: 'outcome', value: 'success', reason: '' }],
      [{ op: 'action', step: 0, action: 0, value: { type: 'click', at: { x: 1e9, y: 0 } } }],
      [{ op: 'delete', steps: [999] }],
    ])
      await expect(
        s.call(m.editAnnotations, { run, rollout: r, base: 0, ops }),
        JSON.stringify(ops).slice(0, 80),
      ).rejects.toMatchObject({ kind: 'params.invalid' });
    for (const rollout of ['nobody', 'nobody/b', `${r}/b`])
      await expect(s.get(rollout), rollout).rejects.toMatchObject({ kind: 'not.found' });
    await expect(s.call(m.getAnnotations, { run: join(dir, 'nowhere'), rollout: r })).rejects.toMatchObject({
      kind: 'not.found',
    });
    expect(await readdir(run)).not.toContain('annotations');
  });

  it('mark rows of lists, which are filtered by them', async () => {
    const run = await fresh(),
      s = client(run),
      [a, b, c] = truth.told.map((t) => t.id) as [string, string, string];
    await s.edit(a, 0, { op: 'tags', tags: ['keep'] }, { op: 'reviewed', value: true });
    await s.edit(b, 0, { op: 'tags', tags: ['keep', 'x'] });
    await s.edit(c, 0, { op: 'outcome', value: 'success', reason: 'seen' });
    const list = async (filter: object): Promise<string[]> =>
      (await s.call<{ rows: TrajectoryRow[] }>(m.listTrajectories, { run, filter, limit: 1000 })).rows
        .map((r) => r.rollout)
        .sort();
    expect([
      await list({ tag: 'keep' }),
      await list({ tag: 'x' }),
      await list({ annotated: true }),
      await list({ reviewed: true }),
      await list({ tag: 'nobody' }),
    ]).toEqual([[a, b].sort(), [b], [a, b, c].sort(), [a], []]);
    const all = await list({});
    expect([(await list({ annotated: false })).length, (await list({ reviewed: false })).length]).toEqual([
      all.length - 3,
      all.length - 1,
    ]);
    expect(
      await s.call<{ rows: TrajectoryRow[]; total: number }>(m.listTrajectories, {
        run,
        filter: { annotated: true, tag: 'x' },
      }),
    ).toMatchObject({ total: 1, rows: [{ annotated: { revision: 1, tags: ['keep', 'x'] } }] });
    expect(await list({ tag: 'truncated' })).not.toHaveLength(0);
    // Taken back, it is as if nothing had been said.
    await s.call(m.undoAnnotation, { run, rollout: c });
    expect(await list({ annotated: true })).toEqual([a, b].sort());
  });

  it('of the parts behind a split are their own', async () => {
    const run = await fresh(),
      r = failure(),
      s = client(run),
      whole = await s.call<TrajectoryView>(m.getTrajectory, { run, rollout: r });
    await s.edit(r, 0, { op: 'split', step: 2 });
    s.told.length = 0;
    const b = await s.edit(`${r}/b`, 1, { op: 'tags', tags: ['rest'] }, { op: 'delete', steps: [3] });
    expect([b.rollout, b.parts, b.tags, b.deleted, b.trajectory.row.outcome]).toEqual([
      `${r}/b`,
      [r],
      ['rest'],
      [3],
      'failure',
    ]);
    expect(s.told.map((t) => (t.params as { rollout: string }).rollout)).toEqual([r, `${r}/b`]);
    expect(await s.get(r)).toMatchObject({
      revision: 2,
      tags: [],
      parts: [`${r}/b`],
      trajectory: { steps: whole.steps.slice(0, 2), row: { outcome: 'error', errorKind: 'unverified' } },
    });
    expect((await s.call<TrajectoryView>(m.getTrajectory, { run, rollout: `${r}/b` })).steps).toEqual(
      whole.steps.slice(2),
    );
    expect(
      (await s.call<{ text: string }>(m.exportTrajectory, { run, rollout: `${r}/b` })).text.trim().split('\n'),
    ).toHaveLength(whole.steps.length - 2 + 1);
    expect([...(await readAnnotations(run)).keys()]).toEqual([r, `${r}/b`]);
    await expect(s.call(m.replayTrajectory, { run, rollout: `${r}/b` })).rejects.toMatchObject({
      kind: 'params.invalid',
      message: expect.stringContaining('begins in the middle') as string,
    });
    for (let i = 0; i < 2; i++) await s.call(m.undoAnnotation, { run, rollout: i === 0 ? `${r}/b` : r });
    await expect(s.get(`${r}/b`)).rejects.toMatchObject({ kind: 'not.found' });
  });

  it('of a run that another process writes can be made; of a rollout that runs they cannot', async () => {
    const run = join(dir, `run${n++}`),
      live = await writeSyntheticRun(run, { groups: 2, size: 3, running: 1 }),
      store = await RunStore.open(run, { index: 'local' });
    try {
      const s = client(run),
        done = live.told.find((t) => t.outcome === 'failure' || t.outcome === 'success')!.id,
        running = live.told.find((t) => t.outcome === 'running')!.id;
      expect(await s.edit(done, 0, { op: 'note', text: 'meanwhile' })).toMatchObject({
        revision: 1,
        note: 'meanwhile',
      });
      expect(await s.get(running)).toMatchObject({ locked: { message: 'It is still running.' } });
      await expect(s.edit(running, 0, { op: 'note', text: 'x' })).rejects.toMatchObject({ kind: 'busy' });
      await expect(s.call(m.replayTrajectory, { run, rollout: done })).rejects.toMatchObject({ kind: 'run.busy' });
    } finally {
      await store.close();
    }
  });

  it('that another process is editing are shown and locked', async () => {
    const run = await fresh(),
      r = failure(),
      first = client(run),
      second = client(run);
    await first.edit(r, 0, { op: 'note', text: 'mine' });
    expect(await second.get(r)).toMatchObject({
      note: 'mine',
      locked: { message: expect.stringContaining('another process') as string },
    });
    await expect(second.edit(r, 1, { op: 'note', text: 'yours' })).rejects.toMatchObject({
      kind: 'run.busy',
      message: expect.stringContaining('being edited by another process') as string,
    });
    await first.edit(r, 1, { op: 'note', text: 'mine still' });
    expect((await second.get(r)).note).toBe('mine still');
    await first.service.close({ now: true });
    expect((await second.edit(r, 2, { op: 'note', text: 'yours' })).locked).toBeUndefined();
  });

  it('of a folder that cannot be written are shown and locked', async () => {
    const run = await fresh(),
      r = failure(),
      s = client(run);
    // Root may write anywhere; what cannot be a folder stops it too.
    if (process.getuid?.() === 0) await writeFile(join(run, 'annotations'), 'in the way');
    else await chmod(run, 0o555);
    await expect(s.edit(r, 0, { op: 'note', text: 'x' })).rejects.toMatchObject({
      kind: 'store.io',
      message: expect.stringContaining('cannot be written') as string,
      error: { remedy: expect.stringMatching(/permissions/) as string },
    });
    const v = await s.get(r);
    expect([v.revision, v.trajectory.row.rollout]).toEqual([0, r]);
    expect(v.locked).toMatchObject({
      message: expect.stringContaining('cannot be written') as string,
      remedy: expect.stringMatching(/[Cc]opy/) as string,
    });
    expect((await s.call<{ rows: TrajectoryRow[] }>(m.listTrajectories, { run })).rows.length).toBeGreaterThan(0);
  });

  it('survive kill -9 of the process that writes them, up to the last that was answered', async () => {
    const run = await fresh(),
      r = failure(),
      p = spawn(process.execPath, [child, entry.file, run, r, join(dir, 'cache')], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
    children.push(p);
    let answered = 0;
    const ended = once(p, 'exit');
    for await (const line of createInterface({ input: p.stdout })) {
      answered = Number(line);
      if (answered === 25) p.kill('SIGKILL');
    }
    expect((await ended)[1]).toBe('SIGKILL');
    const s = client(run),
      v = await s.get(r);
    expect(answered).toBeGreaterThanOrEqual(25);
    expect(v.revision).toBeGreaterThanOrEqual(answered);
    expect([v.note, v.locked]).toEqual([`note ${v.revision}`, undefined]);
    expect(await s.edit(r, v.revision, { op: 'note', text: 'on' })).toMatchObject({
      revision: v.revision + 1,
      note: 'on',
    });
  });
});

describe('the review queue through the service', () => {
  it('ranks what is in the index, corrected by what people said, and leaves out the reviewed', async () => {
    const run = await fresh(),
      s = client(run),
      queue = (o: object = {}): Promise<ReviewQueue> => s.call<ReviewQueue>(m.reviewQueue, { run, limit: 1000, ...o });
    const finished = truth.told.filter((t) => t.outcome === 'success' || t.outcome === 'failure'),
      first = await queue();
    expect([first.total, first.reviewed, first.items.map((i) => i.row.rollout).sort()]).toEqual([
      finished.length,
      0,
      finished.map((t) => t.id).sort(),
    ]);
    for (const i of first.items) expect(i.why).toMatch(/^[A-Z].*\.$/);
    expect(first.items.map((i) => i.priority)).toEqual(first.items.map((i) => i.priority).sort((a, b) => b - a));
    const top = first.items[0]!.row.rollout;
    await s.edit(top, 0, { op: 'reviewed', value: true });
    const second = await queue();
    expect([
      second.total,
      second.reviewed,
      second.items.length,
      second.items.some((i) => i.row.rollout === top),
    ]).toEqual([finished.length, 1, finished.length - 1, false]);
    expect((await queue({ includeReviewed: true })).items.at(-1)).toMatchObject({
      row: { rollout: top, annotated: { reviewed: true } },
      reviewed: true,
    });
    const { family } = first.items[0]!.row;
    expect(new Set((await queue({ family })).items.map((i) => i.row.family))).toEqual(new Set([family]));
    // A family that nobody solved is solved by a corrected verdict.
    const lost = (await queue({ limit: 1 })).items[0]!;
    const others = finished.filter((t) => t.family === lost.row.family && t.outcome === 'success');
    for (const o of others) await s.edit(o.id, 0, { op: 'outcome', value: 'failure', reason: 'it was wrong' });
    expect((await queue()).items[0]!.why).toMatch(/^Nobody has solved this task yet/);
  });
});
