import { readFile, readdir } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalAction, type Trajectory } from '../../../runtime/domain/index.js';
import { parseActions } from '../../../runtime/policy/actions/uiTars.js';
import { ContentHash } from '../../../runtime/data/content.js';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import { recordedView } from '../../../runtime/service/recordedView.js';
import { exportRun } from '../../../runtime/interchange/exporter.js';
import { newRun } from '../../../runtime/data/collections.js';
import { importInto } from '../../../runtime/interchange/importer.js';
import type { ExportFormat } from '../../../runtime/interchange/types.js';
import { importedOf, inFolder, makeRun } from '../../helpers/interchange/make.js';
import { plansOf } from '../../helpers/interchange/arbitrary.js';

const size = { width: 160, height: 100 };
/** What must come back, in one comparable shape. */
const essence = (t: Trajectory): unknown => ({
  task: t.task,
  family: t.family,
  instruction: t.instruction,
  cap: t.cap,
  startedAt: t.startedAt,
  endedAt: t.endedAt,
  outcome: t.outcome,
  last: t.steps.at(-1)!.actions.some((a) => a.type === 'finished' || a.type === 'fail') ? undefined : t.last,
  steps: t.steps.map((s) => ({
    index: s.index,
    frame: s.frame,
    actions: s.actions.map(canonicalAction),
    origin: s.origin,
    thought: s.thought,
  })),
});
/** When each step was, as the inspector shows it. */
async function timesOf(dir: string, ts: readonly Trajectory[]): Promise<number[][]> {
  const run = await RunReader.open(dir, { index: 'local' });
  try {
    return await Promise.all(ts.map(async (t) => (await recordedView(run, t.id)).steps.map((s) => s.at)));
  } finally {
    await run.close();
  }
}
const content = (t: Trajectory): string => {
  const h = new ContentHash();
  for (const s of t.steps) h.step(s);
  return h.end(t);
};
/** Copies are one trajectory: each content once, in order. */
const distinct = (ts: readonly Trajectory[]): unknown[] => [
  ...new Map(ts.map((t) => [content(t), essence(t)])).values(),
];
const byContent = (ts: readonly Trajectory[]): Trajectory[] =>
  [...ts].sort((a, b) => content(a).localeCompare(content(b)));

describe('export, then import: equal steps, actions, outcomes, and frames by their hash', () => {
  test.each<ExportFormat>(['osworld', 'agentnet', 'traj'])(
    '%s',
    async (format) => {
      await fc.assert(
        fc.asyncProperty(plansOf(size), async (plans) =>
          inFolder(async (dir) => {
            const before = await makeRun(join(dir, 'a'), plans, size),
              written = Date.now();
            const r = await exportRun(
              {
                run: join(dir, 'a'),
                to: join(dir, 'out'),
                format,
                options: { coordinates: 'qwen25' },
              },
              recordedView,
            );
            expect(r).toMatchObject({ trajectories: plans.length, problems: [] });
            const got = await importInto(
              { path: join(dir, 'out'), format: 'auto', options: {} },
              { dir: join(dir, 'b'), index: 'local', entry: { file: 'no JPEG here' }, create: newRun('b', 1) },
              { pool: true },
            );
            expect(got.problems).toEqual([]);
            const after = await importedOf(join(dir, 'b'));
            expect(got.imported + got.duplicateCount).toBe(plans.length);
            // Of copies the first in the order of files counts: their thoughts may differ, their content may not.
            expect(byContent(after).map(content)).toEqual([...new Set(byContent(before).map(content))]);
            if (got.duplicateCount === 0) {
              expect(byContent(after).map(essence)).toEqual(byContent(before).map(essence));
              // When each step was is told too, though the copy was written later.
              const [was, is] = [
                await timesOf(join(dir, 'a'), byContent(before)),
                await timesOf(join(dir, 'b'), byContent(after)),
              ];
              expect(is).toEqual(was);
              expect(is.flat().every((at) => at <= written)).toBe(true);
            }
            for (const t of after) {
              expect(t.provenance.kind).toBe('imported');
              expect(t.steps.every((s) => s.tokens === undefined && s.version === undefined)).toBe(true);
            }
            // Back into the run they came from they are all known.
            expect(
              await importInto(
                { path: join(dir, 'out'), format: 'auto', options: {} },
                { dir: join(dir, 'a'), index: 'local', entry: { file: 'no JPEG here' } },
                { pool: true },
              ),
            ).toMatchObject({ imported: 0, duplicateCount: plans.length });
            expect(distinct(after)).toHaveLength(after.length);
          }),
        ),
        { numRuns: 12 },
      );
    },
    180_000,
  );

  test('openai messages: the grammar gives the actions back to the nearest unit, pictures are there, a split shares no task', async () => {
    await fc.assert(
      fc.asyncProperty(plansOf(size), fc.boolean(), async (plans, split) =>
        inFolder(async (dir) => {
          const before = await makeRun(join(dir, 'a'), plans, size),
            usable = before.filter((t) => t.steps[0]!.actions.length > 0);
          const done = exportRun(
            {
              run: join(dir, 'a'),
              to: join(dir, 'out'),
              format: 'openai',
              options: { coordinates: 'absolute' },
              ...(split ? { split: { share: 0.5, seed: 3 } } : {}),
            },
            recordedView,
          );
          if (usable.length === 0) {
            await expect(done).rejects.toMatchObject({ kind: 'config.invalid' });
            expect(existsSync(join(dir, 'out'))).toBe(false);
            return;
          }
          expect(await done).toMatchObject({ trajectories: usable.length });
          const tasks: Set<string>[] = [];
          let seen = 0;
          for (const part of split ? await readdir(join(dir, 'out')) : ['.']) {
            const folder = join(dir, 'out', part),
              mine = new Set<string>();
            if (!existsSync(join(folder, 'messages.jsonl'))) continue;
            tasks.push(mine);
            for (const line of (await readFile(join(folder, 'messages.jsonl'), 'utf8')).trim().split('\n')) {
              const o = JSON.parse(line) as {
                id: string;
                task: string;
                messages: { role: string; content: unknown }[];
              };
              const t = before.find((x) => x.id === o.id)!,
                answers = o.messages.filter((m) => m.role === 'assistant');
              mine.add(o.task);
              seen++;
              for (const [i, a] of answers.entries())
                expect(
                  parseActions(a.content as string, { mode: 'absolute', screen: size }).actions.map(canonicalAction),
                ).toEqual(t.steps[i]!.actions.map(canonicalAction));
              const urls = o.messages.flatMap((m) =>
                Array.isArray(m.content)
                  ? (m.content as { image_url?: { url: string } }[]).flatMap((p) =>
                      p.image_url ? [p.image_url.url] : [],
                    )
                  : [],
              );
              expect(urls).toHaveLength(answers.length);
              for (const u of urls) expect(existsSync(join(folder, u))).toBe(true);
            }
          }
          expect(seen).toBe(usable.length);
          if (tasks.length === 2) expect([...tasks[0]!].filter((t) => tasks[1]!.has(t))).toEqual([]);
        }),
      ),
      { numRuns: 10 },
    );
  });
});
