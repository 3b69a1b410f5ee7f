import { mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { AnnotationLog, annotationsDir, readLog } from '../../../runtime/annotations/log.js';
import { parseRunFile } from '../../../runtime/config/index.js';
import { folderHolder } from '../../../runtime/data/store/folderLock.js';
import { PngFrameStore, readFrame } from '../../../runtime/data/store/frames.js';
import { IndexEngine, sqlJs } from '../../../runtime/data/store/indexEngine.js';
import { DiskRoom } from '../../../runtime/data/store/room.js';
import { readMeta, RunReader, RunStore, runPaths } from '../../../runtime/data/store/runStore.js';
import {
  GLYPH_SPEC,
  id,
  READER_SPEC,
  type FrameRef,
  type RolloutId,
  type RunId,
} from '../../../runtime/domain/index.js';
import { replaceFile } from '../../../runtime/files/replaceFile.js';
import { exportRun } from '../../../runtime/interchange/exporter.js';
import { labelName } from '../../../runtime/protocol/runLabel.js';
import { ScreenFile } from '../../../runtime/run/backends/screenFile.js';
import { startEmbedded } from '../../../runtime/run/backends/embedded.js';
import { startEmbeddedActing } from '../../../runtime/run/backends/embeddedActing.js';
import { startOwnEngine } from '../../../runtime/run/backends/ownEngine.js';
import { StartedParts } from '../../../runtime/run/backends/startedParts.js';
import type { BackendRequest } from '../../../runtime/run/backends/types.js';
import { EventFile } from '../../../runtime/run/tensorBoard.js';
import { labelOf } from '../../../runtime/service/runLabels.js';
import { recordedView } from '../../../runtime/service/recordedView.js';
import { leaveRunning, leaveSummary } from '../../../runtime/service/summaryFile.js';
import { writeTrajectory } from '../../../runtime/service/trajectories.js';
import { writeFigures, type RunFigures } from '../../../runtime/run/figures.js';
import { framesIn, writeShared } from '../../../runtime/share/write.js';
import { writePolicyGraph } from '../../../runtime/trainer/native/model/policyGraph.js';
import { adoptWeights, weightsFolder } from '../../../runtime/trainer/engine/state.js';
import { manifestText, readCheckpoint, writeCheckpoint } from '../../../runtime/trainer/checkpoint.js';
import { ending, fifo, scratch } from '../../helpers/files/hostile.js';
import { makeRun, onePress, screen } from '../../helpers/interchange/make.js';

/**
 * A run folder may come from a stranger, and a link in it may lead to any file of the user: nothing is written through
 * one, and nothing is read through one.
 */

const MINE = 'The only copy of something that matters.\n';

/** A run with one screen, and a file and a folder of the user beside it. */
async function strange(
  f: (at: { base: string; dir: string; frame: FrameRef; file: string; folder: string }) => Promise<void>,
  /** Its screens are files, as older versions kept them. */
  files = false,
): Promise<void> {
  await scratch(async (base) => {
    const dir = join(base, 'runs', 'a'),
      file = join(base, 'mine.txt'),
      folder = join(base, 'mine');
    await mkdir(folder);
    // Looks left behind by a process that is gone, and as if it had been replaced.
    for (const name of ['x.999999.tmp', 'v000009.replaced']) await writeFile(join(folder, name), MINE);
    await writeFile(file, MINE);
    await makeRun(dir, [onePress], undefined, { sync: false, files });
    const frame = await reading(dir, async (r) => (await r.readTrajectory(id<RolloutId>('r1')))!.steps[0]!.frame);
    await f({ base, dir, frame, file, folder });
    // Whatever was done, the user's own is as it was.
    expect(await readFile(file, 'utf8')).toBe(MINE);
    expect((await readdir(folder)).sort()).toEqual(['v000009.replaced', 'x.999999.tmp']);
  });
}
/** The names under which a file is made before it gets its own count up: a link lies at the next of them. */
async function linksWhereMade(path: string, to: string): Promise<void> {
  for (let n = 1; n <= 300; n++) await symlink(to, `${path}.${process.pid}-${n}.tmp`);
}
async function reading<T>(dir: string, f: (r: RunReader) => Promise<T>): Promise<T> {
  const r = await RunReader.open(dir, { index: 'local' });
  try {
    return await f(r);
  } finally {
    await r.close();
  }
}
/** Moves what is there to `to`, and leaves a link. */
async function linkAway(path: string, to: string): Promise<void> {
  await rename(path, to);
  await symlink(to, path);
}
/** A link to something, or a FIFO. */
async function put(path: string, to: string | undefined): Promise<void> {
  if (to === undefined) fifo(path);
  else await symlink(to, path);
}
const open = (dir: string): Promise<RunStore> => RunStore.open(dir, { index: 'local' });
const refused = { kind: 'store.damaged', message: expect.stringMatching(/link|not a regular file/) as string };
const head = { policy: 'p', layout: 'l', values: {} };

beforeAll(async () => {
  await sqlJs();
});

describe('through a link in a run folder nothing is written', () => {
  it.each(['00000000', '00000001'])('to the journal: segment %s', (name) =>
    strange(async ({ dir, file }) => {
      const segment = join(dir, 'journal', `${name}.journal`);
      await rm(segment, { force: true });
      await symlink(file, segment);
      expect(await ending(open(dir))).toMatchObject(refused);
    }),
  );

  it('to the annotations', () =>
    strange(async ({ dir, file }) => {
      await mkdir(annotationsDir(dir));
      await symlink(file, join(annotationsDir(dir), '00000000.journal'));
      expect(await ending(AnnotationLog.open(dir))).toMatchObject(refused);
      expect(await ending(readLog(dir))).toMatchObject(refused);
    }));

  it('to the reserve, which is made anew; a FIFO in its place is not waited for', () =>
    strange(async ({ base, dir, file }) => {
      const { reserve } = runPaths(dir),
        large = join(base, 'large');
      await writeFile(large, Buffer.alloc(4 << 20, 1));
      for (const to of [file, large, undefined]) {
        await rm(reserve, { force: true });
        await put(reserve, to);
        const room = new DiskRoom(reserve);
        expect(await ending(room.keepReserve())).toBe('done');
        expect((await readFile(reserve)).equals(Buffer.alloc(4 << 20, 0x5a))).toBe(true);
        await room.end();
      }
      expect((await readFile(large))[0]).toBe(1);
    }));

  it('to the index; a FIFO in its place is not waited for', () =>
    strange(async ({ dir, file }) => {
      const { index, journal } = runPaths(dir);
      for (const to of [file, undefined]) {
        await rm(index);
        await put(`${index}.tmp`, to);
        const engine = await IndexEngine.open(journal, index);
        expect(await ending(engine.snapshot())).toBe('done');
        engine.close();
        expect((await readFile(index)).subarray(0, 6).toString()).toBe('SQLite');
      }
    }));

  it('to run.json of a run that is made', () =>
    strange(async ({ base, file }) => {
      const dir = join(base, 'made'),
        create = { id: id<RunId>('made'), createdAt: 0 };
      await mkdir(dir);
      await linksWhereMade(join(dir, 'run.json'), file);
      await (await RunStore.open(dir, { index: 'local', create })).close();
      expect((await readMeta(dir)).id).toBe('made');
    }));

  it.each(['journal', 'frames', 'checkpoints'])('into its folder %s, and nothing in there is tidied up', (name) =>
    strange(async ({ dir, folder }) => {
      await rm(join(dir, name), { recursive: true });
      await symlink(folder, join(dir, name));
      expect(await ending(open(dir))).toMatchObject({ ...refused, error: { details: { path: join(dir, name) } } });
    }),
  );

  it('into its folder of annotations', () =>
    strange(async ({ dir, folder }) => {
      await symlink(folder, annotationsDir(dir));
      expect(await ending(AnnotationLog.open(dir))).toMatchObject(refused);
    }));

  it('to a screen: neither as a pack, nor into a folder of screens of an older version', () =>
    strange(async ({ dir, frame, file, folder }) => {
      const frames = join(dir, 'frames');
      await symlink(file, join(frames, 'frames-000002.pack'));
      await symlink(folder, join(frames, frame.hash.slice(0, 2)));
      const store = await open(dir);
      await store.frames.put(screen(2));
      await store.close();
      expect((await readdir(frames)).sort()).toContain('frames-000003.pack');
    }));

  it('to a screen that is copied in from another run', () =>
    strange(async ({ base, dir, frame, folder }) => {
      const to = join(base, 'other');
      await mkdir(to);
      await symlink(folder, join(to, 'frames'));
      const copied = new PngFrameStore(join(to, 'frames')).copyIn(frame, new PngFrameStore(join(dir, 'frames')));
      expect(await ending(copied)).toMatchObject({ kind: 'store.io' });
    }));

  it.each(['a pack', 'a file'])('to remove a screen that is %s', (what) =>
    strange(async ({ base, dir, frame }) => {
      const theirs = join(base, 'theirs'),
        own = join(dir, 'frames', what === 'a pack' ? 'frames-000001.pack' : frame.hash.slice(0, 2)),
        store = new PngFrameStore(join(dir, 'frames'));
      await linkAway(own, theirs);
      store.mark([frame.hash]);
      expect(await store.removeMarked({ dry: false })).toEqual({ frames: 0, bytes: 0 });
      await store.compact();
      expect(await store.totalBytes()).toBe(0);
      expect(await readdir(base)).toContain('theirs');
      if (what === 'a file') expect(await readdir(theirs)).toHaveLength(1);
    }, what === 'a file'),
  );

  it('to list the screens of a pack that were removed', () =>
    strange(async ({ dir, frame, folder }) => {
      const store = new PngFrameStore(join(dir, 'frames'));
      await symlink(folder, join(dir, 'frames', 'unfinished'));
      store.mark([frame.hash]);
      expect(await ending(store.removeMarked({ dry: false }))).toMatchObject(refused);
    }));

  it('to a checkpoint, nor to any file that is replaced whole', () =>
    strange(async ({ base, dir, file, folder }) => {
      const at = join(dir, 'checkpoints', 'v000001');
      await symlink(folder, `${at}.${process.pid}.tmp`);
      await writeCheckpoint(at, head, { 'weights.f32': Buffer.alloc(8) });
      await symlink(folder, `${at}.replaced`);
      await writeCheckpoint(at, { ...head, values: { n: 2 } }, { 'weights.f32': Buffer.alloc(8) });
      expect((await readCheckpoint(at, head)).values).toEqual({ n: 2 });
      await linksWhereMade(join(dir, 'x'), file);
      await replaceFile(join(dir, 'x'), 'y');
      expect(await readFile(join(dir, 'x'), 'utf8')).toBe('y');
      const other = join(base, 'other');
      await mkdir(other);
      await symlink(folder, join(other, 'checkpoints'));
      expect(await ending(writeCheckpoint(join(other, 'checkpoints', 'v000001'), head, {}))).toMatchObject(refused);
    }));

  it('to the weights that replicas read', () =>
    strange(async ({ dir, file, folder }) => {
      const request = {
        config: parseRunFile({}),
        dir,
        checkpoint: { version: 1, dir: join(dir, 'checkpoints', 'v000001') },
        signal: new AbortController().signal,
      } as unknown as BackendRequest;
      await writeCheckpoint(request.checkpoint!.dir, { ...head, policy: READER_SPEC.id }, {});
      await symlink(folder, join(dir, '.weights'));
      for (const start of [startEmbeddedActing, startEmbedded])
        expect(await ending(start(request, new StartedParts(request.signal)))).toMatchObject(refused);
      const graph = join(dir, 'policy.graph.onnx');
      await linksWhereMade(graph, file);
      await writePolicyGraph(GLYPH_SPEC, graph);
      expect((await stat(graph)).size).toBeGreaterThan(1000);
    }));

  it('to the screens of reading lessons, nor to its summary', () =>
    strange(async ({ dir, file }) => {
      for (const name of ['reading.screens', 'summary.json']) await linksWhereMade(join(dir, name), file);
      await new ScreenFile(join(dir, 'reading.screens')).save('key', []);
      await leaveSummary(dir, { run: dir } as unknown as Parameters<typeof leaveSummary>[1]);
      expect(await new ScreenFile(join(dir, 'reading.screens')).load('key')).toEqual([]);
      expect(JSON.parse(await readFile(join(dir, 'summary.json'), 'utf8'))).toEqual({ run: dir });
    }));

  it('to the figures of a run, nor to its page', () =>
    strange(async ({ dir, frame, file, folder }) => {
      const page = join(dir, 'report.html');
      for (const path of [page, join(dir, 'figures.json')]) {
        await symlink(file, path);
        await linksWhereMade(path, file);
      }
      await symlink(file, `${page}.${process.pid}.partial`);
      await writeFigures(dir, { run: 'a' } as unknown as RunFigures);
      expect(JSON.parse(await readFile(join(dir, 'figures.json'), 'utf8'))).toEqual({ run: 'a' });
      const view = await reading(dir, (r) => recordedView(r, id<RolloutId>('r1')));
      await writeShared({ to: page, framesDir: join(dir, 'frames'), trajectory: view });
      expect(await readFile(page, 'utf8')).toContain('<!doctype html>');
      // A hash that is a path makes no folder elsewhere.
      const away = { ...frame, hash: '../../../mine/made/x' },
        steps = view.steps.map((s) => ({ ...s, frame: away, after: undefined })),
        store = new PngFrameStore(join(dir, 'frames'));
      expect(
        await ending(writeTrajectory({ ...view, steps }, join(dir, 'out', 'x.traj.jsonl'), (f) => store.read(f))),
      ).toMatchObject({ kind: 'store.io' });
      expect(await readdir(folder)).not.toContain('made');
    }));

  it('to event files of TensorBoard', () =>
    strange(async ({ dir, file, folder }) => {
      const at = 1_700_000_000_000,
        board = join(dir, 'tensorboard'),
        name = `events.out.tfevents.1700000000.dart.${process.pid}`;
      await symlink(folder, board);
      expect(await ending(new EventFile(board, dir).write({ at, step: 1, values: { a: 1 } }))).toMatchObject(refused);
      await rm(board);
      await mkdir(board);
      await symlink(file, join(board, name));
      const events = new EventFile(board, dir);
      await events.write({ at, step: 1, values: { a: 1 } });
      await events.close();
      expect((await readdir(board)).sort()).toEqual([name, `${name}.2`]);
    }));

  it('by an engine that is started with the run', () =>
    strange(async ({ base, dir, file, folder }) => {
      const model = join(base, 'model'),
        uri = 'tinker://m/weights/w';
      await mkdir(model);
      await writeFile(join(model, 'config.json'), '{}');
      const signal = AbortSignal.abort(),
        config = parseRunFile({
          policy: { kind: 'vlm', vlm: { model } },
          trainer: { remote: { engine: 'auto' } },
        });
      const start = (): Promise<unknown> =>
        ending(startOwnEngine({ config, dir, signal } as unknown as BackendRequest, new StartedParts(signal)));
      await symlink(folder, join(dir, 'engine'));
      expect(await start()).toMatchObject(refused);
      await rm(join(dir, 'engine'));
      await mkdir(join(dir, 'engine', 'models', 'm'), { recursive: true });
      await symlink(file, join(dir, 'engine', 'models', 'm', 'model.json.new'));
      expect(await start()).toMatchObject(refused);
      await rm(join(dir, 'engine', 'models', 'm', 'model.json.new'));
      expect(await start()).not.toMatchObject({ kind: 'store.damaged' });
      // Weights of another run come to it.
      const [from, to] = [join(base, 'from', 'engine'), join(base, 'to', 'engine')],
        source = weightsFolder(from, uri)!;
      await mkdir(source, { recursive: true });
      await writeFile(join(source, 'engine.json'), '{}');
      await writeFile(join(from, 'models', 'm', 'model.json'), '{}');
      await mkdir(join(to, 'models'), { recursive: true });
      await symlink(folder, join(to, 'models', 'm'));
      expect(await ending(adoptWeights(from, to, uri))).toMatchObject(refused);
    }));
});

describe('through a link in a run folder nothing is read', () => {
  it('as run.json, its summary or its label', () =>
    strange(async ({ base, dir }) => {
      await writeFile(join(base, 'label'), JSON.stringify({ name: 'theirs' }));
      await symlink(join(base, 'label'), join(dir, labelName));
      expect(await labelOf(dir)).toEqual({});
      await writeFile(join(base, 'summary'), JSON.stringify({ error: 'theirs' }));
      await symlink(join(base, 'summary'), join(dir, 'summary.json'));
      const plan = { dir, run: 'a', config: { name: 'a', seed: 0 } };
      await leaveRunning(
        plan as unknown as Parameters<typeof leaveRunning>[0],
        {} as Parameters<typeof leaveRunning>[1],
      );
      expect(await readFile(join(dir, 'summary.json'), 'utf8')).not.toContain('theirs');
      await linkAway(join(dir, 'run.json'), join(base, 'run.json'));
      for (const opened of [RunReader.open(dir, { index: 'local' }), open(dir)])
        expect(await ending(opened)).toMatchObject({
          kind: 'store.io',
          message: expect.stringContaining('run.json is not a regular file') as string,
        });
    }));

  it('as its journal or its index', () =>
    strange(async ({ base, dir }) => {
      await linkAway(join(dir, 'index.sqlite'), join(base, 'index.sqlite'));
      const engine = await IndexEngine.open(join(dir, 'journal'), join(dir, 'index.sqlite'));
      expect(engine.status().start).toBe('rebuilt');
      engine.close();
      await linkAway(join(dir, 'journal'), join(base, 'journal'));
      expect(await ending(reading(dir, (r) => r.at(16)))).toMatchObject(refused);
    }));

  it('as who holds its lock', () =>
    strange(async ({ base, dir }) => {
      const claim = { pid: process.pid, host: 'h', since: 'then', inode: '1', kernelLock: false };
      await mkdir(join(base, 'claim'));
      await writeFile(join(base, 'claim', 'owner.json'), JSON.stringify(claim));
      await writeFile(join(base, 'claim', 'alive'), '');
      await rm(join(dir, 'lock'), { recursive: true });
      await mkdir(join(dir, 'lock'));
      await symlink(join(base, 'claim'), join(dir, 'lock', '7'));
      expect(await folderHolder(dir)).not.toMatchObject({ host: 'h' });
    }));

  it.each(['file', 'folder', 'pack'])('as a screen: its %s', (what) =>
    strange(async ({ base, dir, frame }) => {
      const view = await reading(dir, (r) => recordedView(r, id<RolloutId>('r1'))),
        file = join(dir, 'frames', frame.hash.slice(0, 2), `${frame.hash}.png`),
        place = what === 'pack' ? await reading(dir, (r) => r.frames.place(frame.hash)) : { file, hash: frame.hash };
      await linkAway(what === 'folder' ? dirname(file) : place!.file, join(base, 'away'));
      expect(await ending(reading(dir, (r) => r.frames.get(frame)))).toMatchObject(refused);
      expect(await ending(readFrame(place!))).toMatchObject({ code: 'EIRREGULAR' });
      expect(await framesIn(join(dir, 'frames'))(view.steps[0]!.frame)).toBeUndefined();
      const read = (f: FrameRef): Promise<Buffer> => reading(dir, (r) => r.frames.read(f));
      expect(await ending(writeTrajectory(view, join(base, 'x.traj.jsonl'), read))).toMatchObject({
        kind: 'store.io',
      });
      const request = { run: dir, to: join(base, 'out'), format: 'osworld' } as const;
      expect(await ending(exportRun({ ...request, options: { coordinates: 'absolute' } }, recordedView))).toMatchObject(
        { kind: 'config.invalid' },
      );
      const copied = new PngFrameStore(join(base, 'other', 'frames')).copyIn(
        frame,
        new PngFrameStore(join(dir, 'frames')),
      );
      expect(await ending(copied)).toMatchObject({ code: 'EIRREGULAR' });
    }, what !== 'pack'),
  );

  it.each(['manifest.json', 'weights.f32', '', '..'])('as a checkpoint: %j', (part) =>
    strange(async ({ base, dir }) => {
      const at = join(dir, 'checkpoints', 'v000001');
      await writeCheckpoint(at, head, { 'weights.f32': Buffer.alloc(8) });
      expect((await readCheckpoint(at, head)).files['weights.f32']).toHaveLength(8);
      await linkAway(join(at, part), join(base, 'away'));
      expect(await ending(readCheckpoint(at, head))).toMatchObject({ kind: 'trainer.invalid' });
      if (part !== 'weights.f32') expect(await ending(manifestText(at))).toMatchObject({ code: 'EIRREGULAR' });
    }),
  );

  it('as screens of reading lessons', () =>
    strange(async ({ base, dir }) => {
      const file = new ScreenFile(join(dir, 'reading.screens'));
      await file.save('key', []);
      await linkAway(join(dir, 'reading.screens'), join(base, 'away'));
      expect(await file.load('key')).toBeUndefined();
    }));

  it('as weights of an engine; a FIFO in the place of one of its files is not waited for', () =>
    strange(async ({ base, dir }) => {
      const uri = 'tinker://m/weights/w',
        from = join(dir, 'engine'),
        source = weightsFolder(from, uri)!,
        model = join(from, 'models', 'm', 'model.json'),
        taken = async (): Promise<unknown> => {
          await rm(join(base, 'new'), { recursive: true, force: true });
          return ending(adoptWeights(from, join(base, 'new', 'engine'), uri));
        };
      await mkdir(source, { recursive: true });
      await writeFile(join(source, 'engine.json'), '{}');
      await writeFile(model, '{}');
      expect(await taken()).toBe('done');
      await linkAway(model, join(base, 'model.json'));
      expect(await taken()).toMatchObject({ kind: 'trainer.invalid' });
      await rm(model);
      fifo(model);
      expect(await taken()).toMatchObject({
        kind: 'trainer.invalid',
        message: expect.stringContaining('is not a regular file') as string,
      });
      await rm(model);
      await writeFile(model, '{}');
      await linkAway(source, join(base, 'weights'));
      expect(await taken()).toMatchObject(refused);
    }));
});

describe('a run folder that is itself reached through a link', () => {
  it('is read and written as any other', () =>
    strange(async ({ base, dir, frame }) => {
      const runs = join(base, 'linked runs'),
        run = join(base, 'linked run');
      await symlink(dirname(dir), runs);
      await symlink(dir, run);
      for (const at of [join(runs, 'a'), run]) {
        const store = await open(at);
        await store.room.keepReserve();
        expect((await store.frames.put(screen(1))).hash).toBe(frame.hash);
        await store.frames.put(screen(2));
        await store.append({ type: 'log', level: 'info', message: 'written' });
        await store.close();
        await (await AnnotationLog.open(at)).close();
        await writeCheckpoint(join(at, 'checkpoints', 'v000001'), head, {});
        expect((await readCheckpoint(join(at, 'checkpoints', 'v000001'), head)).values).toEqual({});
        const events = new EventFile(join(at, 'tensorboard'), at);
        await events.write({ at: 1, step: 1, values: { a: 1 } });
        await events.close();
        expect(await reading(at, (r) => r.index.query('SELECT count(*) AS n FROM rollouts'))).toEqual([{ n: 1 }]);
        expect((await reading(at, (r) => r.frames.get(frame))).width).toBe(160);
      }
      expect((await stat(join(dir, 'annotations'))).isDirectory()).toBe(true);
    }));
});
