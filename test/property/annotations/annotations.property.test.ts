import { mkdir, mkdtemp, open, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Action, ServiceError } from '../../../runtime/domain/index.js';
import type { AnnotationOp, StepMark } from '../../../runtime/protocol/types.js';
import { Annotations } from '../../../runtime/annotations/annotations.js';
import { annotatedOf } from '../../../runtime/annotations/facts.js';
import { after, before, emptyLine, type AnnotationRecord, type Line } from '../../../runtime/annotations/line.js';
import { annotationsDir } from '../../../runtime/annotations/log.js';
import { readAnnotations } from '../../../runtime/annotations/read.js';
import { viewOf } from '../../../runtime/annotations/revise.js';
import { validOps } from '../../../runtime/annotations/validate.js';
import { click, recording } from '../../helpers/annotations/recording.js';

const R = 'r000001',
  rec = recording([
    [click(10, 10)],
    [{ type: 'type', text: 'helo' }],
    [click(20, 20), { type: 'hotkey', keys: ['ctrl', 's'] }],
    [{ type: 'wait' }],
    [{ type: 'drag', from: { x: 1, y: 1 }, to: { x: 9, y: 9 } }],
    [{ type: 'finished' }],
  ]),
  frozen = structuredClone(rec);
let dir: string,
  n = 0;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-annotate-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const step = fc.integer({ min: 0, max: 7 }),
  point = fc.record({ x: fc.integer({ min: -1, max: 640 }), y: fc.integer({ min: 0, max: 400 }) });
const action: fc.Arbitrary<Action> = fc.oneof(
  fc.record({ type: fc.constant('click' as const), at: point }),
  fc.record({ type: fc.constant('type' as const), text: fc.string({ minLength: 1, maxLength: 5 }) }),
  fc.record({ type: fc.constant('drag' as const), from: point, to: point }),
);
const op: fc.Arbitrary<AnnotationOp> = fc.oneof(
  fc.record({
    op: fc.constant('outcome' as const),
    value: fc.constantFrom('success' as const, 'failure' as const, null),
    reason: fc.constantFrom('', 'because', 'ünïcode \u{1f600}'),
  }),
  fc.record({
    op: fc.constant('tags' as const),
    tags: fc.array(fc.constantFrom('a', 'b', ' b ', ''), { maxLength: 3 }),
  }),
  fc.record({ op: fc.constant('note' as const), text: fc.string({ maxLength: 8 }) }),
  fc.record({
    op: fc.constant('mark' as const),
    step,
    mark: fc.constantFrom<StepMark>('key', 'redundant', 'wrong'),
    on: fc.boolean(),
  }),
  fc.record({ op: fc.constant('thought' as const), step, text: fc.option(fc.string({ maxLength: 6 }), { nil: null }) }),
  fc.record({ op: fc.constant('action' as const), step, action: fc.integer({ min: 0, max: 1 }), value: action }),
  fc.record({ op: fc.constant('delete' as const), steps: fc.array(step, { minLength: 1, maxLength: 3 }) }),
  fc.record({ op: fc.constant('restore' as const), steps: fc.array(step, { minLength: 1, maxLength: 3 }) }),
  fc.record({ op: fc.constant('split' as const), step }),
  fc.record({ op: fc.constant('reviewed' as const), value: fc.boolean() }),
);
type Command =
  | { readonly do: 'edit'; readonly place: number; readonly ops: readonly AnnotationOp[] }
  | { readonly do: 'undo' | 'redo' };
const commands = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('edit' as const),
        place: fc.integer({ min: 0, max: 2 }),
        ops: fc.array(op, { minLength: 1, maxLength: 3 }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('undo' as const, 'redo' as const) }) },
  ),
  { maxLength: 14 },
);

/** As the service does it. Undefined: there is nothing to do, or it was refused and leaves everything as it was. */
function recordOf(l: Line, c: Command): AnnotationRecord | undefined {
  if (c.do !== 'edit') {
    const revision = (c.do === 'undo' ? before : after)(l);
    return revision === undefined ? undefined : { type: 'head', rollout: R, revision, at: 1 };
  }
  const part = annotatedOf(R, l)[c.place];
  if (!part) return undefined;
  try {
    return {
      type: 'edit',
      rollout: R,
      part: part.from,
      revision: l.last + 1,
      base: l.head,
      at: 1,
      ops: validOps(rec.steps, R, l, c.place, c.ops),
    };
  } catch (e) {
    if (!(e instanceof ServiceError)) throw e;
    return undefined;
  }
}
const views = (l: Line): unknown[] => annotatedOf(R, l).map((_, i) => viewOf(rec, '/run', l, i));
const store = (): Annotations =>
  new Annotations((t) => {
    throw new Error(t);
  });
const logFile = (run: string): string => join(annotationsDir(run), '00000000.journal');
const folder = async (): Promise<string> => {
  const run = join(dir, String(n++));
  await mkdir(run);
  return run;
};

it('what is edited, undone and redone is the same when read again, by a reader, by the next writer and by the exporter', async () => {
  await fc.assert(
    fc.asyncProperty(commands, async (list) => {
      const run = await folder(),
        a = store(),
        trail: Line[] = [emptyLine];
      for (const c of list) {
        const line = await a.write(run, R, (l) => recordOf(l, c)),
          was = trail.at(-1)!;
        if (c.do === 'undo' && line !== was)
          expect(views(line)).toEqual(
            views(trail.findLast((t) => t.head === line.head)!).map((v, i) => ({
              ...(v as object),
              revisions: (views(line)[i] as { revisions: unknown }).revisions,
            })),
          );
        trail.push(line);
      }
      const last = trail.at(-1)!,
        seen = views(last);
      expect(views(await store().line(run, R))).toEqual(seen);
      await a.close();
      const next = store();
      expect(views(await next.write(run, R, () => undefined))).toEqual(seen);
      expect([...(await readAnnotations(run)).values()]).toEqual(last === emptyLine ? [] : annotatedOf(R, last));
      // Everything undone is the recording, which nothing has touched.
      let l = last;
      while (before(l) !== undefined) l = await next.write(run, R, (x) => recordOf(x, { do: 'undo' }));
      expect((views(l) as { trajectory: unknown }[]).map((v) => v.trajectory)).toEqual([rec]);
      await next.close();
      expect(rec).toEqual(frozen);
      await rm(run, { recursive: true });
    }),
    { numRuns: 60 },
  );
});

it('no step is lost and none is in two parts; each keeps its index; every part has one', () => {
  fc.assert(
    fc.property(commands, (list) => {
      let l = emptyLine;
      for (const c of list) {
        const r = recordOf(l, c);
        if (r)
          l = {
            ...l,
            ...(r.type === 'head'
              ? { head: r.revision }
              : {
                  edits: [
                    ...l.edits.filter((e) => e.revision <= l.head),
                    r as Extract<AnnotationRecord, { type: 'edit' }>,
                  ],
                  head: l.last + 1,
                  last: l.last + 1,
                }),
          };
      }
      const parts = annotatedOf(R, l),
        shown = parts.map((_, i) => viewOf(rec, '/run', l, i)!);
      for (const v of shown) expect(v.trajectory.steps.length).toBeGreaterThan(0);
      expect(
        [...shown.flatMap((v) => [...v.trajectory.steps.map((s) => s.index), ...v.deleted])].sort((x, y) => x - y),
      ).toEqual(rec.steps.map((s) => s.index));
      for (const s of shown.flatMap((v) => v.trajectory.steps)) {
        expect(s.frame).toEqual(rec.steps[s.index]!.frame);
        expect(s.actions.map((x) => x.type)).toEqual(rec.steps[s.index]!.actions.map((x) => x.type));
        const changed = shown.some((v) => v.changed.includes(s.index));
        expect(changed ? s.tokens : s).toEqual(changed ? undefined : rec.steps[s.index]);
      }
    }),
    { numRuns: 300 },
  );
});

it('a crash at any byte loses nothing that was answered, and nothing before it', async () => {
  await fc.assert(
    fc.asyncProperty(
      commands.filter((c) => c.length > 2),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      async (list, where) => {
        const run = await folder(),
          a = store(),
          ends: { readonly size: number; readonly views: unknown[] }[] = [];
        for (const c of list) {
          const l = await a.write(run, R, (x) => recordOf(x, c)),
            size = await stat(logFile(run)).then(
              (s) => s.size,
              () => 0,
            );
          if (size !== (ends.at(-1)?.size ?? 0)) ends.push({ size, views: views(l) });
        }
        await a.close();
        if (ends.length === 0) return;
        // The last write that was answered is whole; of the next one some bytes are there.
        const k = Math.floor(where * ends.length),
          from = ends[k - 1]?.size ?? 16,
          to = ends[Math.min(k, ends.length - 1)]!.size,
          cut = from + Math.floor((to - from) * ((where * ends.length) % 1));
        const bytes = await readFile(logFile(run));
        await truncate(logFile(run), cut);
        const expected = cut === to ? ends[k]!.views : (ends[k - 1]?.views ?? views(emptyLine));
        expect(views(await store().line(run, R))).toEqual(expected);
        const next = store(),
          l = await next.write(run, R, (x) =>
            recordOf(x, { do: 'edit', place: 0, ops: [{ op: 'note', text: 'after the crash' }] }),
          );
        expect(viewOf(rec, '/run', l, 0)!.note).toBe('after the crash');
        await next.close();
        expect((await readFile(logFile(run))).subarray(0, from).equals(bytes.subarray(0, from))).toBe(true);
        expect(views(await store().line(run, R))).toEqual(views(l));
        await rm(run, { recursive: true });
      },
    ),
    { numRuns: 80 },
  );
});

it('a damaged record is left out and reported, and the rest is read', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 4 }),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      async (which, where) => {
        const run = await folder(),
          a = store(),
          ends = [16];
        for (let i = 0; i < 5; i++) {
          await a.write(run, R, (l) =>
            recordOf(l, { do: 'edit', place: 0, ops: [{ op: 'mark', step: i, mark: 'key', on: true }] }),
          );
          ends.push((await stat(logFile(run))).size);
        }
        await a.close();
        const at = ends[which]! + Math.floor((ends[which + 1]! - ends[which]!) * where),
          f = await open(logFile(run), 'r+'),
          byte = Buffer.alloc(1);
        await f.read(byte, 0, 1, at);
        await f.write(Buffer.of(byte[0]! ^ 0x5a), 0, 1, at);
        await f.close();
        const told: string[] = [],
          reader = new Annotations((t) => {
            told.push(t);
          }),
          l = await reader.line(run, R);
        expect(Object.keys(viewOf(rec, '/run', l, 0)!.marks).map(Number)).toEqual(
          [0, 1, 2, 3, 4].filter((i) => i !== which),
        );
        // The last one looks like a write that never finished.
        expect(told.length).toBe(which === 4 ? 0 : 1);
        await rm(run, { recursive: true });
      },
    ),
    { numRuns: 40 },
  );
});

it('what is no annotation log is reported and harmless', async () => {
  const run = await folder(),
    a = store();
  await a.write(run, R, (l) => recordOf(l, { do: 'edit', place: 0, ops: [{ op: 'note', text: 'mine' }] }));
  await a.close();
  await writeFile(join(annotationsDir(run), 'log.txt'), 'not ours');
  expect((await store().line(run, R)).edits).toHaveLength(1);
  await writeFile(logFile(run), 'not a journal at all, but long enough to be looked at');
  const told: string[] = [];
  expect(
    (
      await new Annotations((t) => {
        told.push(t);
      }).lines(run)
    ).size,
  ).toBe(0);
  const again = new Annotations((t) => {
    told.push(t);
  });
  await again.write(run, R, (l) => recordOf(l, { do: 'edit', place: 0, ops: [{ op: 'note', text: 'new' }] }));
  await again.close();
  expect(viewOf(rec, '/run', await store().line(run, R), 0)!.note).toBe('new');
});
