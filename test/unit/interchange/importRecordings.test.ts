import { readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { random } from '../../../runtime/domain/index.js';
import { exportRun } from '../../../runtime/interchange/exporter.js';
import { readTensors, writeTensors } from '../../../runtime/interchange/torchFile.js';
import { recordedView } from '../../../runtime/service/recordedView.js';
import { jpegs } from '../../fixtures/interchange/jpegs.js';
import {
  agentnetFile,
  dartRollout,
  importedOf,
  inFolder,
  makeRun,
  onePress,
  png,
  screen,
  uiTarsFile,
} from '../../helpers/interchange/make.js';
import { frames, look, take } from '../../helpers/interchange/take.js';

describe('AgentNet', () => {
  test('shares of the screen become pixels; people made it; the picture is the screen before', () =>
    inFolder(async (dir) => {
      await agentnetFile(dir, [
        {
          task_id: 't1',
          codes: [
            'pyautogui.click(x=0.5, y=0.25)',
            "pyautogui.write(message='x')",
            "computer.terminate(status='success')",
          ],
        },
        { task_id: 't2', codes: ['pyautogui.scroll(-5)'], task_completed: false },
        { task_id: 't3', codes: ['pyautogui.press("enter")'], task_completed: false },
      ]);
      const r = await take(dir, dir),
        [a, b] = await importedOf(join(dir, 'run'));
      expect(r).toMatchObject({ imported: 2, successes: 1, pooled: 1, problemCount: 1 });
      expect(r.problems[0]).toMatchObject({ where: 'agentnet_ubuntu_5k.jsonl:2' });
      expect(a!.steps.map((s) => [s.actions[0], s.origin, s.thought])).toEqual([
        [{ type: 'click', at: { x: 80, y: 25 } }, 'human', 'thinking 0'],
        [{ type: 'type', text: 'x' }, 'human', 'thinking 1'],
        [{ type: 'finished' }, 'human', 'thinking 2'],
      ]);
      expect(a).toMatchObject({ task: 't1', instruction: 'do t1', outcome: { kind: 'success', truncated: false } });
      expect(b).toMatchObject({ outcome: { kind: 'failure', reward: 0 } });
      expect((await frames(join(dir, 'run')))[0]![1]!.equals(screen(201).data)).toBe(true);
    }));
  test('a single file can be named; a broken line names its number; a missing verdict is asked for', () =>
    inFolder(async (dir) => {
      const file = await agentnetFile(
        dir,
        [{ task_id: 't1', codes: ['pyautogui.click(x=0.5, y=0.25)'], task_completed: 'maybe' }],
        'agentnet_ubuntu_5k',
      );
      await writeFile(file, `${(await import('node:fs')).readFileSync(file, 'utf8')}{"task_id": "t2", "traj": [{"ind`);
      const p = await look(file);
      expect(p.problems.map((x) => x.where)).toEqual(['agentnet_ubuntu_5k.jsonl:1', 'agentnet_ubuntu_5k.jsonl:2']);
      expect(p.problems[0]!.remedy).toMatch(/--verdict/);
      expect(await look(file, { verdict: 'failure' })).toMatchObject({ trajectories: 1, failures: 1, problemCount: 1 });
    }));
});

describe('DART rollouts', () => {
  const answers = [
    "Thought: look\nAction: click(start_box='<|box_start|>(150,80)<|box_end|>')",
    "Thought: write\nAction: type(content='hi\\n')",
    "Thought: so\nAction: finished(content='ok')",
  ];
  test('text coordinates are those of the resized image', () =>
    inFolder(async (dir) => {
      await dartRollout(join(dir, 'd', 'task-7_trace'), answers);
      await take(dir, join(dir, 'd'));
      const [t] = await importedOf(join(dir, 'run'));
      // 280x140 is resized to 420x224 (multiples of 28, at least 78,400 pixels): 150,80 there is 100,50 here.
      expect(t!.steps.map((s) => [s.actions[0], s.thought, s.tokens])).toEqual([
        [{ type: 'click', at: { x: 100, y: 50 } }, 'look', undefined],
        [{ type: 'type', text: 'hi\n' }, 'write', undefined],
        [{ type: 'finished', answer: 'ok' }, 'so', undefined],
      ]);
      expect(t).toMatchObject({ task: 'task-7', instruction: 'Open the note.', outcome: { kind: 'success' } });
    }));
  test('token ids and log-probs of answers come along; what is no such file is left out with a note', () =>
    inFolder(async (dir) => {
      const folder = join(dir, 'd', 'task-7_trace'),
        put = (k: number, file: Uint8Array): Promise<void> => writeFile(join(folder, `data_for_step_${k}.pt`), file);
      await dartRollout(folder, answers);
      await put(1, writeTensors({ logp: Float32Array.of(-0.5, -2), token_ids: Int32Array.of(9, 151_645) }));
      await put(2, writeTensors({ logp: Float32Array.of(-0.5), token_ids: Int32Array.of(9, 10) }));
      await put(3, writeTensors({ logp: new Float32Array(), token_ids: new Int32Array() }));
      const r = await take(dir, join(dir, 'd')),
        [t] = await importedOf(join(dir, 'run'));
      expect(t!.steps.map((s) => s.tokens)).toEqual([
        {
          ids: Int32Array.of(9, 151_645),
          logprobs: Float32Array.of(-0.5, -2),
          entropies: new Float32Array(2),
          bound: 'lower',
        },
        undefined,
        undefined,
      ]);
      expect(r).toMatchObject({ imported: 1, problems: [] });
      expect(Object.keys(r.notes)).toEqual([expect.stringMatching(/data_for_step_2\.pt is of no use: its lists/)]);
    }));
  test('choices of the embedded policy are no tokens: none are written', () =>
    inFolder(async (dir) => {
      const choices = { logprobs: Float32Array.of(-0.5, -2), entropies: Float32Array.of(0.1, 0.2) },
        step = {
          screen: 1,
          actions: [{ type: 'finished' }],
          tokens: { ids: Int32Array.of(3, 1), ...choices },
        } as const;
      await makeRun(join(dir, 'a'), [{ ...onePress, steps: [step] }]);
      await exportRun(
        { run: join(dir, 'a'), to: join(dir, 'out'), format: 'dart', options: { coordinates: 'qwen25' } },
        recordedView,
      );
      const [folder] = await readdir(join(dir, 'out')),
        file = await readFile(join(dir, 'out', folder!, 'data_for_step_1.pt'));
      expect(Object.fromEntries(readTensors(file))).toEqual({ logp: new Float32Array(), token_ids: new Int32Array() });
    }));
  test('errors of its services have no outcome; at the step cap the last screen is kept', () =>
    inFolder(async (dir) => {
      await dartRollout(join(dir, 'd', 'a'), answers, { reward: '-2' });
      await dartRollout(join(dir, 'd', 'b'), answers.slice(0, 2), {
        reward: '0.0',
        trailing: true,
        url: (k) => ({ url: `/mnt/elsewhere/image_000${k}.png` }),
      });
      await dartRollout(join(dir, 'd', 'c'), ['Thought: hm\nAction: fly(away=1)']);
      await dartRollout(join(dir, 'd', 'e'), answers, { url: () => ({ url: '/etc/passwd' }) });
      const r = await take(dir, join(dir, 'd')),
        [t] = await importedOf(join(dir, 'run'));
      expect(r.problems.map((p) => `${p.where} ${p.what}`)).toEqual([
        expect.stringMatching(/^a\/.*model server failed/),
        expect.stringMatching(/^c\/.*message 2 is no action we have \(fly\)/),
        expect.stringMatching(/^e\/.*leads out of the import folder/),
      ]);
      expect(t).toMatchObject({ outcome: { kind: 'failure', reward: 0, truncated: true } });
      expect(t!.last).toBeDefined();
    }));
});

describe('UI-TARS recordings', () => {
  test('the coordinate system is found from the points its recorder noted', () =>
    inFolder(async (dir) => {
      // (150,80) of 420x224, and 0..1000.
      await uiTarsFile(join(dir, 'u', 'a.json'), [
        { value: "Thought: a\nAction: click(start_box='(150,80)')", box: [0.357, 0.357, 0.357, 0.357] },
        { value: 'Action: finished()' },
      ]);
      await uiTarsFile(join(dir, 'u', 'b.json'), [
        { value: "Thought: a\nAction: click(start_box='(500,250)')", box: [0.5, 0.25, 0.5, 0.25] },
      ]);
      await uiTarsFile(join(dir, 'u', 'c.json'), [
        { value: "Thought: a\nAction: click(start_box='(500,250)')", box: [0.9, 0.9, 0.9, 0.9] },
      ]);
      await uiTarsFile(join(dir, 'u', 'd.json'), [{ value: "Thought: a\nAction: click(start_box='(500,250)')" }]);
      expect((await look(join(dir, 'u'))).problems.map((p) => p.remedy)).toEqual(
        Array(4).fill('Set it for all of them with --verdict success or --verdict failure.'),
      );
      const r = await take(dir, join(dir, 'u'), { verdict: 'success' }),
        all = await importedOf(join(dir, 'run'));
      expect(all.map((t) => t.steps[0]!.actions[0])).toEqual([
        { type: 'click', at: { x: 100, y: 50 } },
        { type: 'click', at: { x: 140, y: 35 } },
      ]);
      expect(r.problems.map((p) => p.what)).toEqual([
        expect.stringMatching(/disagree/),
        expect.stringMatching(/coordinates of the model 'some-model'/),
      ]);
      expect(await look(join(dir, 'u'), { verdict: 'success', coordinates: 'relative1000' })).toMatchObject({
        trajectories: 4,
      });
    }));
  test('large screenshots stay in the file; JPEG ones are read, others named', () =>
    inFolder(async (dir) => {
      const big = await png(9, 700, 500);
      expect(big.toString('base64').length).toBeGreaterThan(0);
      const noise = Buffer.alloc(280 * 140 * 4, 0);
      const r0 = random('noise');
      for (let i = 0; i < noise.length; i++) noise[i] = r0.int(256);
      const { pngOf } = await import('../../../runtime/data/store/png.js'),
        noisy = await pngOf({ width: 280, height: 140, data: noise, capturedAt: 0 });
      expect(noisy.toString('base64').length).toBeGreaterThan(32 * 1024);
      await uiTarsFile(join(dir, 'u', 'a.json'), [{ value: 'Action: wait()' }, { value: 'Action: finished()' }], {
        modelName: 'UI-TARS-1.5-7B',
        picture: (k) => Promise.resolve(k === 0 ? noisy : big),
      });
      await uiTarsFile(join(dir, 'u', 'b.json'), [{ value: 'Action: wait()' }], {
        modelName: 'UI-TARS-1.5-7B',
        picture: () => Promise.resolve(Buffer.from([0xff, 0xd8, 0xff, 0xe0, ...Buffer.alloc(200)])),
      });
      await uiTarsFile(join(dir, 'u', 'c.json'), [{ value: 'Action: wait()' }], {
        modelName: 'UI-TARS-1.5-7B',
        mime: 'image/jpeg',
        picture: () => Promise.resolve(Buffer.from(jpegs['420']!.base64, 'base64')),
      });
      const r = await take(dir, join(dir, 'u'), { verdict: 'failure' });
      expect(r).toMatchObject({ imported: 2, steps: 3 });
      expect(r.problems.map((p) => p.what)).toEqual([expect.stringMatching(/the picture of conversation 1 is a JPEG/)]);
      expect((await importedOf(join(dir, 'run')))[1]!.steps[0]!.frame).toMatchObject({ width: 45, height: 27 });
      const [pixels] = await frames(join(dir, 'run'));
      for (let i = 3; i < noise.length; i += 4) noise[i] = 0;
      expect(pixels![0]!.equals(noise)).toBe(true);
    }));
});
