import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Session } from '../../../extension/daemon/session.js';
import { Subscriptions, Watches } from '../../../extension/daemon/standing.js';
import { DaemonError } from '../../../extension/daemon/types.js';
import type { RunEvent } from '../../../runtime/protocol/types.js';

const event = (seq: number): RunEvent => ({ seq, at: 0, type: 'note', level: 'info', message: '' });
interface Asked {
  readonly method: string;
  readonly params: Record<string, unknown>;
  answer(r: unknown): Promise<void>;
  fail(e: unknown): Promise<void>;
}
/** A session whose answers are given by the test. */
function session(): { s: Session; asked: Asked[] } {
  const asked: Asked[] = [],
    settled = (): Promise<void> => new Promise((go) => setImmediate(go));
  const request = (method: string, params: Record<string, unknown>): Promise<unknown> =>
    new Promise((done, fail) => {
      asked.push({
        method,
        params,
        answer: async (r) => {
          done(r);
          await settled();
        },
        fail: async (e) => {
          fail(e);
          await settled();
        },
      });
    });
  return { s: { request } as unknown as Session, asked };
}
const lost = new DaemonError('connection.lost', 'lost', '');

describe('subscriptions', () => {
  it('ask for what comes next, and hand on each event once, over connections that end anywhere', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 40 }),
        fc.infiniteStream(fc.nat(4)),
        async (gaps, cuts) => {
          const journal: number[] = [];
          for (const g of gaps) journal.push((journal.at(-1) ?? -1) + g);
          const subs = new Subscriptions(),
            got: number[] = [],
            end = journal.at(-1)! + 1;
          let next = 0;
          subs.add(
            { run: 'r', sinceSeq: 0 },
            (b) => {
              got.push(...b.events.map((e) => e.seq));
              next = b.nextSeq;
            },
            () => {
              throw new Error('failed');
            },
          );
          for (let id = 1; next < end; id++) {
            const { s, asked } = session();
            subs.attach(s);
            expect(asked[0]!.params).toEqual({ run: 'r', sinceSeq: next });
            const since = asked[0]!.params['sinceSeq'] as number,
              rest = journal.filter((q) => q >= since);
            await asked[0]!.answer({ subscription: id, headSeq: end });
            for (let i = 0, cut = cuts.next().value as number; i < rest.length && cut > 0; i += 2, cut--) {
              const part = rest.slice(i, i + 2);
              subs.take({
                run: 'r',
                subscription: id,
                events: part.map(event),
                nextSeq: part.at(-1)! + 1,
                live: false,
              });
            }
            subs.take({ run: 'r', subscription: id + 1000, events: [event(end + 5)], nextSeq: end + 9, live: true }); // nobody's
            subs.attach(undefined);
            // of the connection that is gone
            subs.take({ run: 'r', subscription: id, events: [event(end + 7)], nextSeq: end + 9, live: true });
          }
          expect(got).toEqual(journal);
        },
      ),
      { numRuns: 60 },
    );
  });
  it('end with the run, and are not asked for again', async () => {
    const subs = new Subscriptions(),
      { s, asked } = session(),
      got: unknown[] = [];
    subs.attach(s);
    subs.add(
      { run: 'r', sinceSeq: 4, types: ['note'], rollout: 'x' },
      (b) => got.push(b),
      () => undefined,
    );
    expect(asked[0]!.params).toEqual({ run: 'r', sinceSeq: 4, types: ['note'], rollout: 'x' });
    await asked[0]!.answer({ subscription: 1, headSeq: 5 });
    subs.take({ run: 'r', subscription: 1, events: [event(4)], nextSeq: 5, live: true, ended: true });
    expect(got).toEqual([{ events: [event(4)], nextSeq: 5, live: true, ended: true }]);
    const again = session();
    subs.attach(again.s);
    expect(again.asked).toEqual([]);
  });
  it('fail by name when the run is gone or damaged, and wait when only the connection is', async () => {
    const subs = new Subscriptions(),
      a = session(),
      failed: string[] = [];
    subs.attach(a.s);
    subs.add(
      { run: 'r', sinceSeq: 0 },
      () => undefined,
      (e) => failed.push(e.kind),
    );
    await a.asked[0]!.fail(lost);
    const b = session();
    subs.attach(b.s);
    await b.asked[0]!.answer({ subscription: 1, headSeq: 0 });
    subs.take({
      run: 'r',
      subscription: 1,
      events: [],
      nextSeq: 0,
      live: true,
      error: { kind: 'store.damaged', message: 'm', remedy: 'r' },
    });
    subs.add(
      { run: 'gone', sinceSeq: 0 },
      () => undefined,
      (e) => failed.push(e.kind),
    );
    await b.asked[1]!.fail(new DaemonError('not.found', 'm', 'r'));
    expect(failed).toEqual(['store.damaged', 'not.found']);
  });
  it('dropped before the answer came are dropped at the daemon too', async () => {
    const subs = new Subscriptions(),
      { s, asked } = session(),
      got: unknown[] = [];
    subs.attach(s);
    const off = subs.add(
      { run: 'r', sinceSeq: 0 },
      (b) => got.push(b),
      () => undefined,
    );
    off();
    await asked[0]!.answer({ subscription: 3, headSeq: 0 });
    expect(asked[1]).toMatchObject({ method: 'events/unsubscribe', params: { subscription: 3 } });
    subs.take({ run: 'r', subscription: 3, events: [event(0)], nextSeq: 1, live: true });
    expect(got).toEqual([]);
  });
});

describe('watched desktops', () => {
  const at = (stream: number, t: number) => ({ stream, x: 0, y: 0, width: 1, height: 1, at: t });
  it('a picture that overtakes the answer is not lost', async () => {
    const watches = new Watches(),
      { s, asked } = session(),
      seen: string[] = [];
    watches.attach(s);
    watches.add('d', 5, {
      start: (w) => seen.push(`start ${w.width}`),
      patch: (h) => seen.push(`patch ${h.at}`),
      end: () => seen.push('end'),
    });
    expect(asked[0]!.params).toEqual({ desktop: 'd', maxFps: 5 });
    watches.patch(at(9, 1), new Uint8Array());
    watches.patch(at(8, 2), new Uint8Array());
    await asked[0]!.answer({ stream: 9, width: 64, height: 48 });
    watches.patch(at(9, 3), new Uint8Array());
    watches.patch(at(8, 4), new Uint8Array());
    watches.ended({ stream: 9 });
    watches.patch(at(9, 5), new Uint8Array());
    expect(seen).toEqual(['start 64', 'patch 1', 'patch 3', 'end']);
  });
});
