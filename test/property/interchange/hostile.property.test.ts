import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { newRun } from '../../../runtime/data/collections.js';
import { importInto, preview } from '../../../runtime/interchange/importer.js';
import {
  agentnetFile,
  dartRollout,
  importedOf,
  inFolder,
  makeRun,
  osworldTask,
  uiTarsFile,
  success,
} from '../../helpers/interchange/make.js';
import { recordedView } from '../../../runtime/service/recordedView.js';
import { exportRun } from '../../../runtime/interchange/exporter.js';

/** One good trajectory of every format, and the text files they consist of. */
async function sources(dir: string): Promise<string[]> {
  const src = join(dir, 'src');
  const os = await osworldTask(
    join(src, 'os'),
    'os',
    'task',
    [{ action: 'pyautogui.click(3, 4)', response: "Thought: a\nAction: click(start_box='(3,4)')" }, { action: 'DONE' }],
    { initial: true },
  );
  const list = await agentnetFile(join(src, 'agentnet'), [
    { task_id: 't', codes: ['pyautogui.click(x=0.5, y=0.25)', "computer.terminate(status='success')"] },
  ]);
  const dart = await dartRollout(join(src, 'dart', 'r'), [
    "Thought: a\nAction: click(start_box='(150,80)')",
    'Action: finished()',
  ]);
  const tars = await uiTarsFile(join(src, 'tars', 'a.json'), [
    { value: "Action: click(start_box='(150,80)')", box: [0.357, 0.357, 0.357, 0.357] },
    { value: 'Action: finished()' },
  ]);
  await makeRun(join(dir, 'own'), [
    {
      task: 'own',
      family: 'own',
      instruction: 'x',
      outcome: success,
      steps: [
        { screen: 1, actions: [{ type: 'click', at: { x: 1, y: 2 } }] },
        { screen: 2, actions: [{ type: 'finished' }] },
      ],
    },
  ]);
  await exportRun(
    { run: join(dir, 'own'), to: join(src, 'traj'), format: 'traj', options: { coordinates: 'qwen25' } },
    recordedView,
  );
  return [
    join(os, 'traj.jsonl'),
    join(os, 'result.txt'),
    list,
    join(dart, 'final_messages.json'),
    join(dart, 'task_config.json'),
    join(dart, 'reward.txt'),
    tars,
    join(src, 'traj', 'demo%2F0.traj.jsonl'),
  ];
}

test(
  'whatever happens to the text of a source, it is a problem with words or a whole trajectory; the run stays sound',
  () =>
    inFolder(async (dir) => {
      const files = await sources(dir),
        texts = await Promise.all(files.map((f) => readFile(f)));
      const options = { verdict: 'success' } as const,
        source = { path: join(dir, 'src'), format: 'auto', options } as const;
      expect(await preview(source)).toMatchObject({ trajectories: 5, problemCount: 0 });
      const edit = fc.oneof(
        fc.record({
          kind: fc.constant('flip' as const),
          at: fc.double({ min: 0, max: 0.999, noNaN: true }),
          byte: fc.integer({ min: 0, max: 255 }),
        }),
        fc.record({ kind: fc.constant('cut' as const), at: fc.double({ min: 0, max: 1, noNaN: true }) }),
        fc.record({
          kind: fc.constant('swap' as const),
          from: fc.constantFrom(
            '"step_1',
            '.png',
            '"image',
            '0.5',
            'click',
            '"code"',
            '"value"',
            '[',
            '"index":0',
            '"hash":"',
            '150',
            'true',
          ),
          to: fc.constantFrom('"../../x', '{}', 'null', '1e999', '"', '-1', '[[', '/etc/passwd', '\u0000', '__proto__'),
        }),
      );
      let n = 0;
      await fc.assert(
        fc.asyncProperty(
          fc.nat({ max: files.length - 1 }),
          fc.array(edit, { minLength: 1, maxLength: 3 }),
          async (which, edits) => {
            let b = Buffer.from(texts[which]!);
            for (const e of edits) {
              if (e.kind === 'cut') b = b.subarray(0, Math.floor(b.length * e.at));
              else if (e.kind === 'flip' && b.length > 0) b[Math.floor(b.length * e.at)] = e.byte;
              else if (e.kind === 'swap') b = Buffer.from(b.toString('utf8').replace(e.from, e.to));
            }
            await writeFile(files[which]!, b);
            try {
              const seen = await preview(source),
                into = join(dir, `run${n++}`);
              expect(seen.trajectories).toBeGreaterThanOrEqual(4);
              for (const p of seen.problems) {
                expect(p.where).not.toBe('');
                expect(p.what.length).toBeLessThan(500);
                expect(p.what).not.toMatch(/undefined|\[object/);
              }
              const got = await importInto(
                source,
                { dir: into, index: 'local', entry: { file: 'no JPEG here' }, create: newRun('r', 1) },
                { pool: true },
              );
              expect(got.imported + got.problemCount + got.duplicateCount).toBe(seen.trajectories + seen.problemCount);
              const all = await importedOf(into);
              expect(all).toHaveLength(got.imported);
              for (const t of all)
                for (const [i, s] of t.steps.entries()) {
                  expect(s.index).toBe(i);
                  expect(s.frame.hash).toMatch(/^[0-9a-f]{64}$/);
                  expect(t.outcome.kind).not.toBe('error');
                }
            } finally {
              await writeFile(files[which]!, texts[which]!);
            }
          },
        ),
        { numRuns: 60 },
      );
    }),
  180_000,
);
