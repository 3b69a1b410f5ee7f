import { readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseTrajectory, sequencesOf, type Step, type Trajectory } from '../../../runtime/domain/index.js';
import { newRun } from '../../../runtime/data/collections.js';
import { exportRun, type ExportReport } from '../../../runtime/interchange/exporter.js';
import { importInto } from '../../../runtime/interchange/importer.js';
import type { ImportReport } from '../../../runtime/interchange/importReport.js';
import type { ExportFormat } from '../../../runtime/interchange/types.js';
import { recordedView } from '../../../runtime/service/recordedView.js';
import { importedOf, inFolder, makeRemoteRun } from '../../helpers/interchange/make.js';

const text = fc.constantFrom(
  "Thought: I open the menu.\nAction: click(start_box='(12,40)')",
  'Thought: The note is saved \u2713.\nAction: wait()',
  'x',
);
/** Nothing is what older records have. */
const finish = fc.constantFrom('stop', 'length', 'content_filter', '');
const turn = fc.record({
  finish,
  screen: fc.integer({ min: 1, max: 5 }),
  text,
  actions: fc.constant([{ type: 'click', at: { x: 3, y: 4 } } as const]),
  rejected: fc.option(
    fc.array(fc.record({ text, finish, reason: fc.string({ maxLength: 30 }) }), { minLength: 1, maxLength: 2 }),
    {
      nil: undefined,
    },
  ),
  unknown: fc.option(fc.constant([0]), { nil: undefined }),
  silent: fc.option(fc.constant(true), { nil: undefined, freq: 6 }),
  human: fc.option(fc.constant(true), { nil: undefined, freq: 6 }),
});

const write = (dir: string, format: ExportFormat): Promise<ExportReport> =>
  exportRun({ run: join(dir, 'a'), to: join(dir, 'out'), format, options: { coordinates: 'qwen25' } }, recordedView);
const read = (dir: string): Promise<ImportReport> =>
  importInto(
    { path: join(dir, 'out'), format: 'auto', options: {} },
    { dir: join(dir, 'b'), index: 'local', entry: { file: 'no JPEG here' }, create: newRun('b', 1) },
    { pool: true },
  );
/** What a trainer needs; a version counts another run's updates and stays behind. */
const sampled = (steps: readonly Step[]): unknown =>
  steps.map((s) => ({
    tokens: s.tokens,
    prompt: s.prompt,
    rejected: s.rejected?.map(({ version: _v, ...r }) => r),
  }));
const decoded = (t: Trajectory): unknown =>
  sequencesOf(t).map(({ step, rejected, symbols, images, answer, logprobs }) => ({
    step: step.index,
    rejected,
    symbols,
    images,
    answer,
    logprobs,
  }));
const ofFile = async (dir: string): Promise<string> => {
  const [name] = (await readdir(join(dir, 'out'))).filter((f) => f.endsWith('.traj.jsonl'));
  return join(dir, 'out', name!);
};

describe('what a remote model sampled, through a .traj.jsonl file', () => {
  test('comes back bit by bit: ids, unknown log-probs, bounds, why it ended, prompts, rejected answers', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 6 }), async (turns) =>
        inFolder(async (dir) => {
          const before = await makeRemoteRun(join(dir, 'a'), turns);
          expect(await write(dir, 'traj')).toMatchObject({ problems: [], notes: {} });
          expect(await read(dir)).toMatchObject({ imported: 1, problems: [], notes: {} });
          const [after] = await importedOf(join(dir, 'b'));
          expect(sampled(after!.steps)).toEqual(sampled(before.steps));
          expect(decoded(after!)).toEqual(decoded(before));
          expect(after!.steps.every((s) => s.version === undefined)).toBe(true);
        }),
      ),
      { numRuns: 25 },
    );
  });

  test('is shown after an import as before it, tokens in words', async () =>
    inFolder(async (dir) => {
      await makeRemoteRun(join(dir, 'a'), [
        { screen: 1, text: 'Thought: I open the menu.', rejected: [{ text: 'no', reason: 'no action' }] },
        { screen: 2, text: 'Thought: Done.', unknown: [1] },
      ]);
      await write(dir, 'traj');
      const shown = parseTrajectory(await readFile(await ofFile(dir), 'utf8'));
      if (!shown.ok) throw new Error(shown.why);
      expect(shown.skipped).toEqual([]);
      const [first, second] = shown.trajectory.steps;
      expect(first).toMatchObject({
        entropyBound: 'lower',
        rejected: [{ text: 'no', reason: 'no action', version: 4, tokens: [{ label: 'no' }, { label: '<|im_end|>' }] }],
      });
      expect(second!.prompt).toMatchObject({ images: [first!.frame, second!.frame] });
      expect(second!.tokens![1]).toEqual(expect.not.objectContaining({ logprob: expect.anything() as unknown }));
      expect(JSON.stringify(shown.trajectory)).not.toContain('"record"');
    }));

  test('readers of version 0.1 get every step: a step with an unknown log-prob has no tokens for them', async () =>
    inFolder(async (dir) => {
      await makeRemoteRun(join(dir, 'a'), [
        { screen: 1, text: 'Thought: One.' },
        { screen: 2, text: 'Thought: Two.', unknown: [0] },
      ]);
      await write(dir, 'traj');
      const lines = (await readFile(await ofFile(dir), 'utf8')).trim().split('\n').slice(1);
      const old = lines.map((l) => JSON.parse(l) as { tokens?: { logprob: unknown; entropy: unknown }[] });
      expect(old.map((s) => s.tokens?.length)).toEqual([expect.any(Number), undefined]);
      for (const s of old)
        for (const t of s.tokens ?? []) expect([typeof t.logprob, typeof t.entropy]).toEqual(['number', 'number']);
    }));

  test("through a DART rollout folder come ids and log-probs of the answers that were acted on, and the answers' words", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 6 }), async (turns) =>
        inFolder(async (dir) => {
          const before = await makeRemoteRun(join(dir, 'a'), turns);
          expect(await write(dir, 'dart')).toMatchObject({ trajectories: 1, problems: [] });
          expect(await read(dir)).toMatchObject({ imported: 1, problems: [], formats: { dart: 1 } });
          const [after] = await importedOf(join(dir, 'b'));
          expect(after!.steps.map((s) => [s.tokens?.ids, s.tokens?.logprobs])).toEqual(
            before.steps.map(({ tokens: t }) =>
              t?.ids && !t.logprobs.some(Number.isNaN) ? [t.ids, t.logprobs] : [undefined, undefined],
            ),
          );
          expect(after).toMatchObject({
            task: before.task,
            family: before.family,
            instruction: before.instruction,
            outcome: { kind: before.outcome.kind },
            cap: before.cap,
            startedAt: before.startedAt,
            endedAt: before.endedAt,
          });
          expect(after!.steps.map(({ actions, frame, origin }) => ({ actions, frame, origin }))).toEqual(
            before.steps.map(({ actions, frame, origin }) => ({ actions, frame, origin })),
          );
        }),
      ),
      { numRuns: 25 },
    );
  });

  test('formats that have no place for it say so', async () =>
    inFolder(async (dir) => {
      await makeRemoteRun(join(dir, 'a'), [
        { screen: 1, text: 'x', actions: [{ type: 'click', at: { x: 3, y: 4 } }] },
        { screen: 2, text: 'x', actions: [{ type: 'finished' }] },
      ]);
      for (const format of ['osworld', 'agentnet', 'dart', 'openai'] as const) {
        const r = await exportRun(
          { run: join(dir, 'a'), to: join(dir, format), format, options: { coordinates: 'qwen25' } },
          recordedView,
        );
        expect(Object.entries(r.notes)).toEqual([[expect.stringContaining('only traj has a place'), 1]]);
      }
    }));

  test('damage is left out with a note, whatever it is; the trajectory is imported, and what is left can be read', async () => {
    const damages: readonly [string, (record: Record<string, unknown>) => unknown][] = [
      ['not an object', () => 'nothing'],
      ['ids of another length', (r) => ({ ...r, tokens: { ...(r['tokens'] as object), ids: 'AAAA' } })],
      ['no base64', (r) => ({ ...r, tokens: { ...(r['tokens'] as object), ids: '%%' } })],
      ['a positive log-prob', (r) => ({ ...r, tokens: { logprobs: f32(1), entropies: f32(0), ids: i32(1) } })],
      ['a negative id', (r) => ({ ...r, tokens: { logprobs: f32(-1), entropies: f32(0), ids: i32(-1) } })],
      [
        'a copy of what is not there',
        (r) => ({ ...r, prompt: { parts: i32(0, 1 << 20, 0), symbols: '', images: [] } }),
      ],
      ['an image nobody named', (r) => ({ ...r, prompt: { parts: i32(0, 0, 1), symbols: i32(-99), images: [] } })],
      ['half a triple', (r) => ({ ...r, prompt: { parts: i32(0, 0), symbols: '', images: [] } })],
      ['an image that is none', (r) => ({ ...r, prompt: { parts: '', symbols: '', images: [{ sha256: 'x' }] } })],
      ['no answer to the prompt', ({ tokens: _t, ...r }) => r],
    ];
    for (const [what, damage] of damages)
      await inFolder(async (dir) => {
        const before = await makeRemoteRun(
          join(dir, 'a'),
          [1, 2, 3].map((n) => ({ screen: n, text: 'Thought: I go on.', actions: [] })),
        );
        await write(dir, 'traj');
        const file = await ofFile(dir),
          lines = (await readFile(file, 'utf8')).trim().split('\n'),
          step = JSON.parse(lines[2]!) as { record: Record<string, unknown> };
        lines[2] = JSON.stringify({ ...step, record: damage(step.record) });
        await writeFile(file, lines.join('\n'));
        const report = await read(dir);
        expect(report, what).toMatchObject({ imported: 1, problems: [] });
        expect(Object.keys(report.notes).length, what).toBeGreaterThan(0);
        const [after] = await importedOf(join(dir, 'b'));
        expect(
          sequencesOf(after!).map((s) => s.symbols),
          what,
        ).toEqual([sequencesOf(before)[0]!.symbols]);
        expect(
          after!.steps.slice(1).every((s) => s.prompt === undefined),
          what,
        ).toBe(true);
      });
  });

  test('random bytes in place of a record never stop an import', async () => {
    await inFolder(async (dir) => {
      await makeRemoteRun(
        join(dir, 'a'),
        [1, 2].map((n) => ({ screen: n, text: 'Thought: I go on.' })),
      );
      await write(dir, 'traj');
      const file = await ofFile(dir),
        lines = (await readFile(file, 'utf8')).trim().split('\n');
      let n = 0;
      await fc.assert(
        fc.asyncProperty(fc.jsonValue(), fc.jsonValue(), async (a, b) => {
          const out = join(dir, `out${n++}`),
            bad = [lines[0]!];
          [a, b].forEach((record, i) => bad.push(JSON.stringify({ ...(JSON.parse(lines[i + 1]!) as object), record })));
          await writeFile(file, bad.join('\n'));
          const report = await importInto(
            { path: join(dir, 'out'), format: 'auto', options: {} },
            { dir: out, index: 'local', entry: { file: 'no JPEG here' }, create: newRun('b', 1) },
            { pool: true },
          );
          expect(report).toMatchObject({ imported: 1, problems: [] });
          const [after] = await importedOf(out);
          expect(() => sequencesOf(after!)).not.toThrow();
        }),
        { numRuns: 20 },
      );
    });
  });
});

const i32 = (...x: number[]): string => Buffer.from(Int32Array.from(x).buffer).toString('base64');
const f32 = (...x: number[]): string => Buffer.from(Float32Array.from(x).buffer).toString('base64');
