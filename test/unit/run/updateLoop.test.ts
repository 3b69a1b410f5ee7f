import { describe, expect, it } from 'vitest';
import type { ClaimedBatch } from '../../../runtime/data/claims.js';
import type { BatchId, GroupId } from '../../../runtime/domain/index.js';
import { id } from '../../../runtime/domain/index.js';
import type { Regime } from '../../../runtime/rollout/regime.js';
import { regimeGate } from '../../../runtime/rollout/regime.js';
import { updateLoop } from '../../../runtime/run/updateLoop.js';

const settle = async (): Promise<void> => {
  for (let i = 0; i < 30; i++) await Promise.resolve();
};

/** A ledger with `ready` groups, a trainer and replicas that end when told. */
function setUp(regime: Regime, batchGroups: number, spare?: (e: unknown) => boolean) {
  const listeners = new Set<() => void>(),
    log: string[] = [],
    training: ((e?: Error) => void)[] = [],
    publishing: ((e?: Error) => void)[] = [];
  const gate = regimeGate({ regime, slots: 10, groups: 2 }),
    stop = new AbortController();
  let ready = 0,
    due = false,
    ring: (() => void) | undefined,
    version = 0,
    batches = 0,
    outcome: unknown = 'running';
  const wait = (list: ((e?: Error) => void)[]) =>
    new Promise<void>((resolve, reject) => {
      list.push((e) => (e ? reject(e) : resolve()));
    });
  const done = updateLoop<number>(
    {
      data: {
        async claimBatch({ minGroups = 1, maxGroups = minGroups }) {
          if (ready < minGroups) return undefined;
          const n = Math.min(ready, maxGroups);
          ready -= n;
          return {
            id: id<BatchId>(`b${++batches}`),
            version,
            groups: Array.from({ length: n }, () => ({})),
            steps: n,
          } as unknown as ClaimedBatch;
        },
        async release(b) {
          log.push(`release ${b}`);
        },
        onChange(f) {
          listeners.add(f);
          return () => {
            listeners.delete(f);
          };
        },
      },
      gate,
      batchGroups,
      version: () => version,
      behavior: () => version,
      async train(b) {
        log.push(`train ${b.groups.length}`);
        await wait(training);
        return ++version;
      },
      async publish(v) {
        log.push(`publish ${v}`);
        await wait(publishing);
        log.push(`published ${v}`);
      },
      between: {
        async hold(published) {
          if (!due || !(await published)) return;
          due = false;
          log.push(`evaluate ${version}`);
        },
        onDue(f) {
          ring = f;
          return () => {
            ring = undefined;
          };
        },
      },
      onGenerate: () => log.push('generate'),
      async spare(b, e) {
        if (!spare?.(e)) return false;
        log.push(`spare ${b.id}`);
        return true;
      },
    },
    stop.signal,
  ).then(
    () => {
      outcome = 'ended';
    },
    (e: unknown) => {
      outcome = e;
    },
  );
  return {
    log,
    gate,
    stop,
    done,
    listeners,
    get outcome() {
      return outcome;
    },
    async ready(n: number) {
      ready += n;
      for (const l of [...listeners]) l();
      await settle();
    },
    async due() {
      due = true;
      ring?.();
      await settle();
    },
    get rings() {
      return ring !== undefined;
    },
    async trained(e?: Error) {
      training.shift()!(e);
      await settle();
    },
    async published(e?: Error) {
      publishing.shift()!(e);
      await settle();
    },
    /** Rolls out a whole batch of which `n` groups survive. */
    async batch(n: number) {
      const gs = [1, 2].map((i) => id<GroupId>(`g${i}`));
      for (const group of gs) gate.started({ group, groupSize: 2 });
      for (const group of gs) gate.closed(group);
      await this.ready(n);
    },
  };
}

describe('decoupled updates', () => {
  it('go on while the last weights are being published, but no further', async () => {
    const s = setUp('rollout', 2);
    await s.ready(1);
    expect(s.log).toEqual([]);
    await s.ready(5);
    await s.trained();
    expect(s.log).toEqual(['train 2', 'publish 1', 'train 2']);
    await s.trained();
    expect(s.log).toEqual(['train 2', 'publish 1', 'train 2']); // the second waits for the first to be out
    await s.published();
    expect(s.log.slice(3)).toEqual(['published 1', 'generate', 'publish 2', 'train 2']);
  });
  it('leave room for an evaluation between them, when nothing is being published: all of it is of one version', async () => {
    const s = setUp('rollout', 1);
    // At once while there is nothing to train.
    await s.due();
    await s.ready(3);
    expect(s.log).toEqual(['evaluate 0', 'train 1']);
    await s.due();
    await s.trained();
    expect(s.log.slice(2)).toEqual(['publish 1']);
    await s.published();
    expect(s.log.slice(3)).toEqual(['published 1', 'generate', 'evaluate 1', 'train 1']);
    // Nor while the replicas cannot have the weights.
    await s.trained();
    await s.due();
    await s.published(new Error('damaged'));
    await s.trained();
    await s.published();
    expect([s.log.includes('evaluate 2'), s.outcome, s.rings]).toEqual([false, new Error('damaged'), false]);
  });
  it('that fail give their batch back and end the loop', async () => {
    const s = setUp('rollout', 1);
    await s.ready(1);
    await s.trained(new Error('no memory'));
    expect([s.log.at(-1), s.outcome, s.listeners.size]).toEqual(['release b1', new Error('no memory'), 0]);
  });
  it('go on after a batch that something on disk spoiled', async () => {
    const s = setUp('rollout', 1, (e) => (e as Error).message === 'damaged');
    await s.ready(2);
    await s.trained(new Error('damaged'));
    expect([s.log, s.outcome]).toEqual([['train 1', 'spare b1', 'train 1'], 'running']);
    await s.trained(new Error('no memory'));
    expect([s.log.at(-1), s.outcome]).toEqual(['release b2', new Error('no memory')]);
  });
  it('end when the weights cannot be published, also while nothing is to be trained', async () => {
    const s = setUp('task', 1);
    await s.ready(1);
    await s.trained();
    await s.published(new Error('damaged'));
    expect(s.outcome).toEqual(new Error('damaged'));
  });
  it('end with the signal, when what is being published is out', async () => {
    const s = setUp('rollout', 1);
    await s.ready(1);
    await s.trained();
    s.stop.abort();
    await settle();
    expect(s.outcome).toBe('running');
    await s.published();
    await s.done;
    expect([s.outcome, s.listeners.size]).toEqual(['ended', 0]);
  });
});

describe('batch-wise updates', () => {
  it('begin when the batch has ended, take all that survived, publish once, then generate', async () => {
    const s = setUp('batch', 2);
    await s.ready(3);
    expect(s.log).toEqual([]);
    await s.batch(0);
    expect(s.log).toEqual(['train 2']);
    await s.trained();
    expect(s.log).toEqual(['train 2', 'train 1']);
    // An evaluation now would be of weights that the replicas do not have.
    await s.due();
    await s.trained();
    expect([s.log.slice(2), s.gate.training]).toEqual([['publish 2'], true]);
    await s.published();
    expect([s.log.slice(3), s.gate.training]).toEqual([['published 2', 'generate', 'evaluate 2', 'generate'], false]);
  });
  it('are left out when nothing survived', async () => {
    const s = setUp('batch', 2);
    await s.batch(0);
    expect([s.log, s.gate.training]).toEqual([['generate'], false]);
  });
});
