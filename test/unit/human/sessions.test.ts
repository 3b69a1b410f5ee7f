import { describe, expect, it } from 'vitest';
import type { SettleOptions } from '../../../runtime/cluster/types.js';
import { StudioError } from '../../../runtime/domain/index.js';
import type { InputEvent } from '../../../runtime/protocol/types.js';
import type { HeldRollout } from '../../../runtime/run/runAccess.js';
import { HumanInputRecorder } from '../../../runtime/human/humanInputRecorder.js';
import { RecordSession, type RecordDeps } from '../../../runtime/human/record.js';
import { ABANDON_MS } from '../../../runtime/human/controlSession.js';
import { TakeOverSession } from '../../../runtime/human/takeOver.js';
import { AGAIN_MS } from '../../../runtime/rollout/rest.js';
import { Steering, type HumanStep } from '../../../runtime/rollout/steering.js';
import type { SchedulerEvent } from '../../../runtime/rollout/types.js';
import { frames, hosted, Screen } from '../../helpers/human/screen.js';
import { fakeTasks, order, task } from '../../helpers/rollout/fakes.js';
import { VirtualClock, flush } from '../../helpers/rollout/virtualClock.js';

const click = (at: number, x = 2, y = 2): InputEvent[] => [
  { type: 'button', at, x, y, button: 'left', down: true },
  { type: 'button', at: at + 50, x, y, button: 'left', down: false },
];
const key = (at: number, k: string): InputEvent[] => [
  { type: 'key', at, key: k, down: true },
  { type: 'key', at: at + 5, key: k, down: false },
];
const shown = (s: readonly HumanStep[]): unknown[] => s.map((x) => [x.actions[0]!.type, x.frame.hash, x.settled]);

describe('a hand', () => {
  async function hand() {
    const clock = new VirtualClock(),
      desktop = new Screen(clock),
      steps: HumanStep[] = [],
      faults: unknown[] = [];
    const h = new HumanInputRecorder({
      desktop,
      frames,
      clock,
      settle: {},
      onStep: (s) => steps.push(s),
      onDoing: () => undefined,
      onFault: (e) => faults.push(e),
    });
    const begun = h.begin();
    await clock.advance(100);
    await begun;
    return { clock, desktop, steps, faults, h };
  }

  it('records each action with the settled screen from before it, and does not wait for a screen to settle', async () => {
    const { clock, desktop, steps, h } = await hand();
    await h.input(click(0));
    await clock.advance(1000);
    await h.input(key(2000, 'a'));
    await clock.advance(3000);
    expect(shown(steps)).toEqual([
      ['click', 'colour 1', true],
      ['type', 'colour 2', true],
    ]);
    desktop.settleMs = 5000;
    await h.input([...click(10_000), ...key(10_100, 'Escape')]);
    await clock.advance(12_000);
    expect(shown(steps.slice(2))).toEqual([
      ['click', 'colour 2', false],
      ['hotkey', 'colour 3', true],
    ]);
  });

  it('a double click does not wait for the answers of a slow desktop, and whoever sends on and on does', async () => {
    const { clock, desktop, steps, h } = await hand(),
      sent: [number, string][] = [];
    let open = 0;
    desktop.input = async (events) => {
      sent.push([clock.now(), events.map((e) => (e.type === 'button' && !e.down ? 'release' : e.type)).join(' ')]);
      open++;
      await clock.sleep(1000);
      open--;
      desktop.draw(desktop.colour + 1);
    };
    const began = clock.now();
    for (const [k, e] of [...click(0), ...click(150)].entries()) {
      await h.input([e]);
      await clock.advance(k % 2 === 0 ? 50 : 100);
    }
    expect(sent).toEqual([0, 50, 150, 200].map((at, k) => [began + at, k % 2 === 0 ? 'button' : 'release']));
    // Its step is told when the desktop has taken it and is at rest, which a slow answer is not.
    await clock.advance(600);
    expect(steps).toHaveLength(0);
    await clock.advance(2000);
    expect(shown(steps)).toEqual([['left_double', 'colour 1', true]]);
    const onAndOn = (async () => {
      for (let k = 0; k < 30; k++) await h.input([{ type: 'move', at: 10_000 + k, x: k % 8, y: 1 }]);
    })();
    await flush();
    expect(open).toBe(8);
    await clock.advance(10_000);
    await onAndOn;
  });

  it('a screen that changes by itself while the person waits is a step of waiting', async () => {
    const { clock, desktop, steps, h } = await hand();
    await clock.advance(4000);
    desktop.draw(7);
    await clock.advance(2000);
    await h.input(click(9000));
    await clock.advance(1000);
    expect(shown(steps)).toEqual([
      ['wait', 'colour 1', true],
      ['click', 'colour 7', true],
    ]);
    expect((steps[0]!.actions[0] as { ms: number }).ms).toBeGreaterThanOrEqual(3900);
  });

  it('lets everything go when it is done, and says when the desktop is gone', async () => {
    const { clock, desktop, steps, faults, h } = await hand();
    await h.input([
      { type: 'key', at: 0, key: 'Control', down: true },
      { type: 'button', at: 10, x: 1, y: 1, button: 'left', down: true },
    ]);
    const done = h.complete();
    await clock.advance(100);
    await done;
    expect(desktop.log.at(-1)).toBe('release');
    expect(steps.map((s) => s.actions[0])).toEqual([{ type: 'click', at: { x: 1, y: 1 }, modifiers: ['ctrl'] }]);
    desktop.lose();
    await expect(h.input(click(100))).rejects.toMatchObject({ error: { kind: 'desktop.lost' } });
    expect(faults).toHaveLength(1);
  });
});

const facts = {
  run: '/r',
  desktop: 'd',
  screen: { width: 8, height: 8 },
  family: 'f1',
  task: 't1',
  seed: 1,
  instruction: 'do it',
};

describe('a recording', () => {
  async function record(
    o: { verdict?: 'success' | 'failure'; verify?: StudioError; asks?: string; held?: string[] } = {},
  ) {
    const clock = new VirtualClock(),
      desktop = new Screen(clock),
      host = hosted(clock),
      kept: string[] = [],
      told: string[] = [],
      instructions: string[] = [];
    let closed = 0;
    const registry = {
      asks: (_: string, instruction: string) => told.push(instruction),
      begin: () => undefined,
      phase: () => undefined,
      progress: () => undefined,
      end: () => undefined,
    } as unknown as RecordDeps['own']['registry'];
    const tasks = fakeTasks(clock, {
      ...(o.asks === undefined ? {} : { instruction: o.asks }),
      ...(o.verify ? { verify: o.verify } : {}),
      verdict: () =>
        o.verdict === 'failure'
          ? { kind: 'failure', reward: 0, truncated: false }
          : { kind: 'success', reward: 1, truncated: false },
    });
    const s = new RecordSession(host, facts, {
      task: task(),
      seed: 1,
      tasks,
      frames: o.held
        ? {
            put: () => Promise.reject(new Error('this one may be removed before it is recorded')),
            hold: () => ({ put: (f) => frames.put(f as never), end: () => void o.held!.push('end') }),
          }
        : frames,
      segment: {},
      own: {
        desktop,
        registry,
        settle: {},
        resetMs: 1,
        close: () => {
          closed++;
          return Promise.resolve();
        },
      },
      keeping: {
        keep: (t, pool) => {
          instructions.push(t.instruction);
          kept.push(
            `${t.outcome.kind} ${typeof pool === 'string' ? pool : pool.override} ${t.steps.map((x) => `${x.index}${x.origin[0]}`).join(' ')}`,
          );
          return Promise.resolve({ pooled: pool !== 'never' });
        },
        pool: () => Promise.resolve({ pooled: true }),
        unpool: (r, why) => {
          kept.push(`out: ${why}`);
          return Promise.resolve();
        },
        annotate: (_, a) => {
          kept.push(`tags ${a.tags?.join(' ')}`);
          return Promise.resolve();
        },
      },
    });
    s.touch();
    const begun = s.begin(new AbortController().signal);
    await clock.advance(200);
    await begun;
    return { clock, desktop, host, s, kept, told, instructions, tasks, closed: () => closed };
  }
  const finish = async (x: { readonly clock: VirtualClock; readonly s: RecordSession }): Promise<void> => {
    const f = x.s.finish({});
    await x.clock.advance(500);
    await f;
  };

  it('shows and keeps what the task asks for once it is set up', async () => {
    const x = await record({ asks: 'Click OK.' });
    expect(x.s.state().instruction).toBe('Click OK.');
    await finish(x);
    expect(x.told).toEqual(['Click OK.']);
    expect(x.instructions).toEqual(['Click OK.']);
  });

  it('a success is kept at once, discarding it takes it out of the pool', async () => {
    const x = await record();
    await x.s.input(click(0));
    await finish(x);
    expect(x.s.state()).toMatchObject({
      mode: 'ended',
      verdict: { outcome: 'success', reward: 1 },
      kept: { pooled: true },
    });
    expect(x.tasks.verified).toEqual([{ type: 'finished' }]);
    expect(x.closed()).toBe(1);
    await x.s.discard();
    expect(x.kept).toEqual(['success auto 0h 1h', 'out: discarded', 'tags discarded']);
  });

  it('its screens are held until it is recorded or given up, however long that takes', async () => {
    const won: string[] = [],
      x = await record({ held: won });
    await x.s.input(click(0));
    expect(won).toEqual([]);
    await finish(x);
    expect([won, x.kept]).toEqual([['end'], ['success auto 0h 1h']]);
    const lost: string[] = [],
      y = await record({ verdict: 'failure', held: lost });
    await finish(y);
    expect(lost).toEqual([]);
    await y.s.keep({ pool: 'never' });
    expect(lost).toEqual(['end']);
    const none: string[] = [],
      z = await record({ held: none });
    await z.s.discard();
    expect(none).toEqual(['end']);
  });

  it('before it is judged, what a terminal may still pass on is waited for', async () => {
    const x = await record(),
      asked: [SettleOptions | undefined, number][] = [],
      settle = x.desktop.settle.bind(x.desktop);
    x.desktop.settle = (o?: SettleOptions) => {
      asked.push([o, x.tasks.verified.length]);
      return settle();
    };
    await finish(x);
    expect(asked.at(-1)).toMatchObject([{ terminalHoldMs: AGAIN_MS }, 0]);
    expect(x.tasks.verified).toHaveLength(1);
  });

  it('a failure is kept when asked for; a verifier that fails is an error, and nothing is kept', async () => {
    const x = await record({ verdict: 'failure' });
    await finish(x);
    expect(x.kept).toEqual([]);
    await expect(x.s.keep({ pool: 'override', reason: ' ' })).rejects.toMatchObject({ kind: 'params.invalid' });
    await x.s.keep({ pool: 'auto' });
    expect(x.kept).toEqual(['failure never 0h']);
    const y = await record({ verify: new StudioError('task.verify', 'no', 'x') });
    await finish(y);
    expect(y.s.state().verdict).toMatchObject({ outcome: 'error', error: { kind: 'task.verify' } });
    await expect(y.s.keep({ pool: 'never' })).rejects.toMatchObject({ kind: 'params.invalid' });
  });

  it('is given up when nobody looks at it for a minute, and not while somebody does', async () => {
    const x = await record(),
      window = new AbortController();
    x.s.attach(window.signal);
    await x.clock.advance(10 * ABANDON_MS);
    expect(x.s.over).toBe(false);
    window.abort();
    expect(x.s.state().abandonedAt).toBe(Math.round(x.clock.now() + ABANDON_MS));
    await x.clock.advance(ABANDON_MS - 100);
    expect(x.s.over).toBe(false);
    await x.clock.advance(200);
    expect([x.s.over, x.closed(), x.host.forgotten, x.kept]).toEqual([true, 1, 1, []]);
  });
});

describe('a take-over', () => {
  it('is handed back when nobody looks at it for a minute; what was begun by hand is recorded first', async () => {
    const clock = new VirtualClock(),
      desktop = new Screen(clock),
      host = hosted(clock),
      steering = new Steering(),
      held: boolean[] = [],
      window = new AbortController(),
      recorded: HumanStep[] = [];
    let tell: (e: SchedulerEvent) => void = () => undefined;
    const r: HeldRollout = {
      kind: 'rollout',
      order: order(1),
      desktop,
      steps: [],
      steering,
      instruction: 'do it',
      frames,
      settle: {},
      onEvent: (l) => {
        tell = l;
        return () => undefined;
      },
      hold: (on) => {
        held.push(on);
      },
    };
    const s = new TakeOverSession(host, facts, r, { mode: 'human', segment: {} });
    s.attach(window.signal);
    await expect(s.input(click(0))).rejects.toMatchObject({ kind: 'params.invalid' });
    const turn = steering.person!.act({
      index: 0,
      left: 5,
      signal: new AbortController().signal,
      record: (x) => {
        recorded.push(x);
      },
    });
    await clock.advance(100);
    expect(s.state()).toMatchObject({ mode: 'human', steps: [] });
    await s.input([{ type: 'button', at: 0, x: 3, y: 3, button: 'left', down: true }]);
    window.abort();
    await clock.advance(1000);
    expect(recorded.map((x) => x.actions[0])).toEqual([{ type: 'click', at: { x: 3, y: 3 } }]);
    await clock.advance(ABANDON_MS);
    expect(await turn).toEqual({ next: 'policy' });
    expect([steering.person, held.at(-1), host.forgotten]).toEqual([undefined, false, 1]);
    tell({ type: 'leaseFailed', error: new StudioError('desktop.start', 'x', 'y').error, at: 0 });
    await flush();
  });

  it('step by step is not begun where the policy has no turn left: the rollout goes on, and the session never came about', async () => {
    const clock = new VirtualClock(),
      desktop = new Screen(clock),
      host = hosted(clock),
      steering = new Steering(),
      held: boolean[] = [];
    const r: HeldRollout = {
      kind: 'rollout',
      order: order(1),
      desktop,
      steps: [],
      steering,
      instruction: 'do it',
      frames,
      settle: {},
      onEvent: () => () => undefined,
      hold: (on) => {
        held.push(on);
      },
    };
    const turn = (s: TakeOverSession, left: number): Promise<unknown> => {
      void s;
      return steering.person!.act({ index: 6, left, signal: new AbortController().signal, record: () => undefined });
    };
    const late = new TakeOverSession(host, facts, r, { mode: 'step', segment: {} }),
      end = turn(late, 0);
    await clock.advance(100);
    expect([await end, await late.taken, late.over, steering.person, held.at(-1)]).toEqual([
      { next: 'policy' },
      false,
      true,
      undefined,
      false,
    ]);
    // By hand there is always something to do.
    const byHand = new TakeOverSession(host, facts, r, { mode: 'human', segment: {} });
    void turn(byHand, 0);
    await clock.advance(100);
    expect([await byHand.taken, byHand.state().mode, byHand.state().left]).toEqual([true, 'human', 0]);
    // To ask for a proposal then would end the rollout.
    await expect(byHand.setMode('step')).rejects.toMatchObject({ kind: 'params.invalid' });
    expect([byHand.state().mode, byHand.over]).toEqual(['human', false]);
    await byHand.setMode('policy');
  });
});
