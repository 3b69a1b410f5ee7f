import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createPool } from '../../../runtime/cluster/index.js';
import { stateDir } from '../../../runtime/cluster/providers/sandboxRecords.js';
import type { Desktop } from '../../../runtime/cluster/types.js';
import type { Outcome } from '../../../runtime/domain/index.js';
import type { RolloutOrder } from '../../../runtime/data/types.js';
import { systemClock } from '../../../runtime/rollout/clock.js';
import { probeSampling } from '../../../runtime/rollout/sampling.js';
import { Scheduler } from '../../../runtime/rollout/scheduler.js';
import { createTaskEngine } from '../../../runtime/tasks/index.js';
import { localProvider, nextEvent, sandboxRecord, SMALL, whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { order } from '../../helpers/rollout/fakes.js';
import { taskOf } from '../../helpers/tasks/fakeDesktop.js';
import { localMetrics } from '../../helpers/tasks/localMetrics.js';

const why = await whyNoLocalDesktops();
if (why) console.warn(`skipped: ${why}`);

/** A command of the verifier that may end the desktop before it is answered. */
const runFatal = (d: Desktop, command: string[]): Promise<unknown> =>
  d.exec(command, { verifier: true }).catch(() => undefined);
/** What befalls a real desktop, from outside of it, and what its rollout then is. */
const FAULTS: Record<string, (d: Desktop) => Promise<unknown>> = {
  // The verifier's commands live where the X server does, out of reach of the programs of the desktop.
  'the X server dies': (d) => runFatal(d, ['pkill', '-9', 'Xvfb']),
  'the X server crashes': (d) => runFatal(d, ['pkill', '-SEGV', 'Xvfb']),
  'the sandbox dies': async (d) => process.kill(sandboxRecord(d.id).processes[0]!.pid, 'SIGKILL'),
  'PID 1 dies': async (d) => process.kill(sandboxRecord(d.id).processes[1]!.pid, 'SIGKILL'),
};

describe.skipIf(why)('faults of real desktops', () => {
  it('end in errors that are tried again, wait for no time limit, and leave nothing', async () => {
    const p = localProvider(),
      pool = createPool({ provider: p, spec: SMALL, size: 2 }),
      clock = systemClock;
    const engine = createTaskEngine({ metrics: localMetrics });
    const names = Object.keys(FAULTS);
    const met = new Map<string, string>(),
      messages: string[] = [],
      outcomes = new Map<string, string[]>();
    const waiting: RolloutOrder[] = Array.from({ length: 24 }, (_, n) => order(n, { cap: 3 }));
    let done = 0,
      end: () => void;
    const ended = new Promise<void>((r) => {
      end = r;
    });
    const scheduler = new Scheduler(
      {
        pool,
        clock,
        episode: {
          tasks: engine,
          clock,
          frames: {
            put: () => Promise.resolve({ width: 2, height: 2, hash: '0' }),
            get: () => Promise.reject(new Error('not asked')),
            read: () => Promise.reject(new Error('not asked')),
          },
          policy: {
            open: ({ rollout }) => {
              let n = 0,
                lost: Promise<unknown> | undefined;
              return {
                decide: async () => {
                  // Every third rollout meets a fault, once; each fault in its turn.
                  if (Number(String(rollout).slice(1)) % 3 === 0 && !met.has(rollout) && n === 1) {
                    const fault = names[met.size % names.length]!;
                    met.set(rollout, fault);
                    const on = scheduler.status().running.find((r) => r.rollout === rollout)!;
                    const { desktop } = scheduler.steerable(on.desktop)!;
                    lost = nextEvent(desktop, (e) => e.type === 'lost');
                    await FAULTS[fault]!(desktop);
                  }
                  // The kernel takes a while to end a sandbox: a rollout that has its verdict by then is a success.
                  if (n === 2) await lost;
                  return {
                    actions: [++n === 3 ? { type: 'finished' as const } : { type: 'wait' as const, ms: 1 }],
                    version: 0,
                    queueMs: 0,
                    computeMs: 1,
                    tokens: { logprobs: new Float32Array(1), entropies: new Float32Array(1), ids: new Int32Array(1) },
                  };
                },
                acted: () => undefined,
                close: () => undefined,
              };
            },
          },
        },
        next: () => waiting.shift(),
        admit: () => waiting.length,
        taskOf: () =>
          taskOf({
            func: 'exact_match',
            result: { type: 'vm_command_line', command: ['echo', 'fine'] },
            expected: { type: 'rule', rules: { expected: 'fine\n' } },
          }),
        sampling: () => ({ greedy: false, temperature: 1, seed: 0 }),
        probeSampling: probeSampling(0),
      },
      { slots: 2 },
    );
    scheduler.onEvent((e) => {
      if (e.type !== 'ended') return;
      const o: Outcome = e.trajectory.outcome;
      const said = o.kind === 'error' ? o.error.kind : o.kind;
      outcomes.set(e.order.rollout, [...(outcomes.get(e.order.rollout) ?? []), said]);
      if (o.kind === 'error') {
        messages.push(o.error.message);
        waiting.push(e.order);
        scheduler.wake();
      } else if (++done === 24) end();
    });
    scheduler.start();
    await ended;
    await scheduler.stop({ graceMs: 0 });
    await pool.close();
    await p.dispose();

    expect(new Set(met.values())).toEqual(new Set(names));
    for (const [r, said] of outcomes)
      expect(said, met.get(r)).toEqual(met.has(r) ? ['desktop.lost', 'success'] : ['success']);
    // As such errors say it.
    expect(messages.filter((m) => /no answer|not answer|within \d/.test(m))).toEqual([]);
    const dir = await stateDir(),
      records = readdirSync(dir).filter((f) => f.endsWith('.json'));
    const mine = records.filter((f) => readFileSync(`${dir}/${f}`, 'utf8').includes(`"owner":{"pid":${process.pid},`));
    expect(mine).toEqual([]);
  });
});
