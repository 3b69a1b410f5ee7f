import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { appendFile, open, readdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { encode } from 'jpeg-js';
import { random } from '../../../runtime/domain/index.js';
import { pngOf } from '../../../runtime/data/store/png.js';
import {
  agentnetFile,
  importedOf,
  inFolder,
  makeRun,
  osworldTask,
  png,
  poolOf,
  put,
  success,
  failure,
  uiTarsFile,
} from '../../helpers/interchange/make.js';

/**
 * Says at the end how much memory the process took at most (kB). Not `maxRSS`: Linux begins it with what the process
 * that started this one had.
 */
const say =
  'data:text/javascript,' +
  encodeURIComponent(
    "import { readFileSync, writeSync } from 'node:fs'; import { isMainThread } from 'node:worker_threads'; if (isMainThread) process.once('exit', () => { writeSync(2, `\\nmost ${/VmHWM:\\s*(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]}\\n`); });",
  );
const cli = resolve('dist/runtime.js');

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** MB. */
  readonly memory: number;
}
function run(
  args: readonly string[],
  o: { readonly node?: readonly string[]; readonly onStart?: (child: ReturnType<typeof spawn>) => void } = {},
): Promise<Ended> {
  const child = spawn(process.execPath, ['--import', say, ...(o.node ?? []), cli, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '',
    stderr = '';
  child.stdout.on('data', (d: Buffer) => {
    stdout += d.toString();
  });
  child.stderr.on('data', (d: Buffer) => {
    stderr += d.toString();
  });
  o.onStart?.(child);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => {
      resolve({ code, stdout, stderr, memory: Number(/most (\d+)/.exec(stderr)?.[1] ?? NaN) / 1024 });
    });
  });
}
const codes = ['pyautogui.click(x=0.5, y=0.25)', "computer.terminate(status='success')"];

describe('import and export from the command line', () => {
  test('look, import into a new run, export it again, import that elsewhere: nothing changed', () =>
    inFolder(async (dir) => {
      const runs = join(dir, 'runs'),
        results = join(dir, 'results');
      await osworldTask(
        results,
        'os',
        'aaa',
        [
          { action: 'pyautogui.click(30, 40)', response: "Thought: open\nAction: click(start_box='(30,40)')" },
          { action: 'DONE' },
        ],
        { initial: true },
      );
      await osworldTask(results, 'os', 'bbb', [{ action: 'pyautogui.tripleClick(30, 40)' }], { initial: true });
      await put(join(dir, 'tasks', 'os', 'aaa.json'), JSON.stringify({ instruction: 'Open it.' }));

      const look = await run(['import', results, '--dry-run', '--runs', runs]);
      expect(look).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(
          /1 trajectory \(1 osworld\) of 1 task, 2 steps; 1 success, 0 failures[\s\S]*bbb\/traj.jsonl:1: there is no action here for pyautogui.tripleClick/,
        ) as string,
      });
      expect(existsSync(runs)).toBe(false);

      const first = await run([
        'import',
        results,
        '--new',
        'imported',
        '--tasks',
        join(dir, 'tasks'),
        '--runs',
        runs,
        '--json',
      ]);
      expect(JSON.parse(first.stdout)).toMatchObject({
        imported: 1,
        pooled: 1,
        problemCount: 1,
        formats: { osworld: 1 },
      });
      expect(first.code).toBe(0);
      const shown = await run(['runs', 'list', '--runs', runs, '--json']);
      expect(JSON.parse(shown.stdout)).toMatchObject([{ id: 'imported', rollouts: 0 }]);

      for (const format of ['osworld', 'agentnet', 'dart', 'traj'] as const) {
        const out = join(dir, `out-${format}`);
        expect(
          JSON.parse((await run(['export', 'imported', out, '--format', format, '--runs', runs, '--json'])).stdout),
        ).toMatchObject({ trajectories: 1, steps: 2, problems: [] });
        expect((await run(['import', out, '--new', `again-${format}`, '--runs', runs])).code).toBe(0);
        const [a] = await importedOf(join(runs, 'imported')),
          [b] = await importedOf(join(runs, `again-${format}`));
        expect({ ...b!, id: '', provenance: 0 }).toEqual({ ...a!, id: '', provenance: 0 });
        expect(b!.id).toBe(a!.id);
        expect(await poolOf(join(runs, `again-${format}`))).toEqual([b!.id]);
      }
    }));

  test('wrong commands say what to do, and make nothing', () =>
    inFolder(async (dir) => {
      const runs = join(dir, 'runs');
      await agentnetFile(join(dir, 's'), [{ task_id: 't', codes }]);
      await makeRun(join(runs, 'here'), [
        {
          task: 't',
          family: 't',
          instruction: 'x',
          outcome: success,
          steps: [{ screen: 1, actions: [{ type: 'wait' }] }],
        },
      ]);
      const cases: readonly (readonly [readonly string[], RegExp])[] = [
        [['import', join(dir, 's'), '--runs', runs], /--into RUN, or --new NAME/],
        [['import', join(dir, 's'), '--new', 'here', '--runs', runs], /already a run here[\s\S]*--into here/],
        [['import', join(dir, 's'), '--new', '../up', '--runs', runs], /a name is/],
        [['import', join(dir, 's'), '--into', 'nowhere', '--runs', runs], /no run 'nowhere'/],
        [['import', join(dir, 's'), '--new', 'n', '--format', 'zip', '--runs', runs], /--format zip: unknown/],
        [['import', join(dir, 'none'), '--dry-run'], /cannot be read: ENOENT/],
        [['export', 'here', join(dir, 's'), '--format', 'traj', '--runs', runs], /is not empty/],
        [['export', 'here', join(dir, 'o'), '--runs', runs], /--format is needed/],
        [
          ['export', 'here', join(dir, 'o'), '--format', 'traj', '--outcome', 'failure', '--runs', runs],
          /No trajectory/,
        ],
        [['export', 'here', join(dir, 'o'), '--format', 'traj', '--split', '2', '--runs', runs], /between 0 and 1/],
      ];
      for (const [args, words] of cases) {
        const r = await run(args);
        expect(r.stderr).toMatch(words);
        expect(r.code).not.toBe(0);
      }
      expect(await readdir(runs)).toEqual(['here']);
      expect((await readdir(dir)).sort()).toEqual(['runs', 's']);
    }));

  test('filters and a split by task', () =>
    inFolder(async (dir) => {
      const runs = join(dir, 'runs');
      await makeRun(
        join(runs, 'r'),
        Array.from({ length: 8 }, (_, i) => ({
          rollout: `demo/${i}`,
          task: `suite/f${i % 4}#${i % 4}`,
          family: `suite/f${i % 4}`,
          instruction: 'x',
          outcome: i < 4 ? success : failure,
          steps: [{ screen: i, actions: [{ type: 'finished' as const }] }],
        })),
      );
      const split = JSON.parse(
        (
          await run([
            'export',
            'r',
            join(dir, 'o'),
            '--format',
            'agentnet',
            '--split',
            '0.75',
            '--seed',
            '5',
            '--runs',
            runs,
            '--json',
          ])
        ).stdout,
      ) as { parts: Record<string, number> };
      expect(split.parts).toEqual({ train: 6, test: 2 });
      expect(
        JSON.parse(
          (
            await run([
              'export',
              'r',
              join(dir, 'o2'),
              '--format',
              'osworld',
              '--outcome',
              'success',
              '--family',
              'suite/f1',
              '--runs',
              runs,
              '--json',
            ])
          ).stdout,
        ),
      ).toMatchObject({ trajectories: 1 });
      expect(await readdir(join(dir, 'o2', 'pyautogui', 'screenshot', 'fixture%20run', 'suite'))).toEqual([
        'suite%2Ff1%231',
      ]);
    }));

  test('Ctrl-C keeps whole trajectories; the command it names goes on', () =>
    inFolder(async (dir) => {
      const runs = join(dir, 'runs'),
        src = join(dir, 's'),
        // Far more than are imported before it hears of the first frames, on a busy machine too.
        n = 300;
      await agentnetFile(
        src,
        Array.from({ length: n }, (_, i) => ({
          task_id: `t${i}`,
          codes: [...Array<string>(6).fill('pyautogui.click(x=0.5, y=0.25)'), codes[1]!],
        })),
      );
      const stopped = await run(['import', src, '--new', 'r', '--runs', runs], {
        onStart: (child) => {
          // As soon as the run has its first frames.
          void (async () => {
            for await (const _ of grown(join(runs, 'r', 'frames'))) {
              child.kill('SIGINT');
              return;
            }
          })();
        },
      });
      expect(stopped.code).toBe(130);
      expect(stopped.stderr).toMatch(/Stopping/);
      const half = await importedOf(join(runs, 'r')).catch(() => []);
      expect(half.length).toBeLessThan(n);
      expect(half.every((t) => t.steps.length === 7)).toBe(true);
      const rest = await run([
        'import',
        src,
        ...(existsSync(join(runs, 'r')) ? ['--into', 'r'] : ['--new', 'r']),
        '--runs',
        runs,
        '--json',
      ]);
      expect(JSON.parse(rest.stdout)).toMatchObject({
        imported: n - half.length,
        already: half.length,
        stopped: false,
      });
      expect(await importedOf(join(runs, 'r'))).toHaveLength(n);
    }));
});

/** Yields when the folder is there and has something in it. */
async function* grown(dir: string): AsyncGenerator<void> {
  const { watch } = await import('node:fs/promises');
  const parent = join(dir, '..', '..', '..');
  for await (const _ of watch(parent, { recursive: true })) if ((await readdir(dir).catch(() => [])).length > 0) yield;
}

function noisy(): Buffer {
  const r = random('noise'),
    data = Buffer.alloc(1920 * 1080 * 4);
  for (let i = 0; i < data.length; i += 4) data.writeUInt32LE(Math.floor(r.next() * 2 ** 24), i);
  return data;
}

describe('memory', () => {
  test(
    'an import much larger than its memory stays under 300 MB',
    () =>
      inFolder(async (dir) => {
        const src = join(dir, 'src'),
          runs = join(dir, 'runs');
        // Screens that do not compress: 6 MB a file, 8 MB as base64.
        const data = noisy(),
          noise = await pngOf({ width: 1920, height: 1080, data, capturedAt: 0 }),
          text = noise.toString('base64');
        // A recording with its screenshots inside, of about 250 MB.
        const recording = join(src, 'recording.json');
        await put(
          recording,
          '{"version":"v1","instruction":"Do it","modelName":"UI-TARS-1.5-7B","status":"end","conversations":[{"from":"human","value":"Do it"}',
        );
        const f = await open(recording, 'a');
        for (let k = 0; k < 30; k++)
          await f.writeFile(
            `,{"from":"human","value":"<image>","screenshotBase64":"${text}"},{"from":"gpt","value":"Thought: step ${k}\\nAction: ${k === 29 ? 'finished()' : `click(start_box='(${k},5)')`}"}`,
          );
        await f.writeFile(']}');
        await f.close();
        // And a list of trajectories of about 150 MB, most of which cannot be used.
        const line = (i: number): string =>
          JSON.stringify({
            task_id: `t${i}`,
            instruction: 'x',
            task_completed: true,
            traj: Array.from({ length: 12 }, () => ({
              index: 0,
              image: 'a.png',
              value: {
                code: i % 500 === 0 ? codes[0] : 'computer.triple_click(x=0.1, y=0.1)',
                thought: 'lorem ipsum '.repeat(100),
              },
            })),
          });
        const list = join(src, 'list.jsonl');
        await put(join(src, 'images', 'a.png'), await png(1));
        for (let i = 0; i < 10_000; i += 100)
          await appendFile(list, Array.from({ length: 100 }, (_, k) => `${line(i + k)}\n`).join(''));
        const size = (await stat(recording)).size + (await stat(list)).size;
        expect(size).toBeGreaterThan(380e6);

        const done = await run(['import', src, '--new', 'big', '--verdict', 'success', '--runs', runs, '--json'], {
          node: ['--max-old-space-size=96'],
        });
        expect(done.stderr).not.toMatch(/heap out of memory/);
        expect(JSON.parse(done.stdout)).toMatchObject({
          imported: 21,
          problemCount: 9980,
          formats: { 'ui-tars': 1, agentnet: 20 },
        });
        console.log(`imported ${Math.round(size / 1e6)} MB in at most ${Math.round(done.memory)} MB of memory`);
        expect(done.memory).toBeLessThan(300);
      }),
    300_000,
  );
  test(
    'JPEG screens, decoded in the worker: many take no more than a few',
    () =>
      inFolder(async (dir) => {
        const jpeg = encode({ width: 1920, height: 1080, data: noisy() }, 90).data,
          n = 12;
        await uiTarsFile(
          join(dir, 'src', 'a.json'),
          Array.from({ length: n }, (_, k) => ({
            value: k === n - 1 ? 'Action: finished()' : `Action: click(start_box='(${k},5)')`,
          })),
          { modelName: 'UI-TARS-1.5-7B', mime: 'image/jpeg', picture: () => Promise.resolve(jpeg) },
        );
        const done = await run(
          ['import', join(dir, 'src'), '--new', 'jpeg', '--verdict', 'success', '--runs', join(dir, 'runs'), '--json'],
          { node: ['--max-old-space-size=96'] },
        );
        expect(JSON.parse(done.stdout)).toMatchObject({ imported: 1, steps: n, problemCount: 0 });
        expect((await importedOf(join(dir, 'runs', 'jpeg')))[0]!.steps[0]!.frame).toMatchObject({
          width: 1920,
          height: 1080,
        });
        console.log(`imported ${n} JPEG screens in at most ${Math.round(done.memory)} MB of memory`);
        expect(done.memory).toBeLessThan(300);
      }),
    300_000,
  );
});
