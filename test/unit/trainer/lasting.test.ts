import { describe, expect, it } from 'vitest';
import { StudioError, type EmbeddedBatch } from '../../../runtime/domain/index.js';
import { lastingTrainer, lostCheckpoint } from '../../../runtime/trainer/native/lasting.js';
import type { EmbeddedTrainer } from '../../../runtime/trainer/types.js';

/** A trainer that only counts versions; `say` is told of each call that a process gets. */
function processes(o: {
  readonly unreadable: ReadonlySet<string>;
  readonly say: (call: string) => void;
  /** What an update waits for. */
  readonly until?: () => Promise<void>;
  readonly closed?: () => void;
}) {
  let alive: { dead: boolean } | undefined;
  return {
    kill: (): void => {
      alive!.dead = true;
    },
    start: (untaught: number): Promise<EmbeddedTrainer> => {
      const me = (alive = { dead: false });
      let version = untaught;
      const call = async <T>(what: string, answer: () => T): Promise<T> => {
        if (me.dead) throw new StudioError('trainer.lost', 'The trainer process ended.', 'Resume.');
        o.say(what);
        return Promise.resolve(answer());
      };
      o.say(`start ${untaught}`);
      const trainer = {
        update: async () => {
          const updated = await call('update', () => ({ version: ++version }));
          await o.until?.();
          return updated;
        },
        checkpoint: () => call('checkpoint', () => ({ version, dir: `/v${version}` })),
        restore: (c: { version: number; dir: string }) =>
          call(`restore ${c.dir} as ${c.version}`, () => {
            if (o.unreadable.has(c.dir)) throw new StudioError('trainer.invalid', `${c.dir} is damaged.`, 'Resume.');
            version = c.version;
          }),
        close: () => {
          o.closed?.();
          return Promise.resolve();
        },
      };
      return Promise.resolve(trainer as unknown as EmbeddedTrainer);
    },
  };
}
const batch = { id: 'b1', samples: [], epochs: 1 } as unknown as EmbeddedBatch;

describe('a trainer that is lost while its last checkpoint is damaged', () => {
  it('says so, and goes on from another one under the version it is given', async () => {
    const unreadable = new Set<string>(),
      said: string[] = [],
      p = processes({ unreadable, say: (c) => said.push(c) }),
      trainer = await lastingTrainer({ start: p.start });
    await trainer.update(batch);
    await trainer.checkpoint();
    await trainer.update(batch);
    const saved = await trainer.checkpoint();
    unreadable.add(saved.dir);
    p.kill();
    const lost = await trainer.update(batch).catch((e: unknown) => e);
    expect(lostCheckpoint(lost)).toBe(2);
    expect(lostCheckpoint(new StudioError('trainer.invalid', 'A batch is wrong.', 'Report it.'))).toBeUndefined();
    expect(lostCheckpoint(new Error('x'))).toBeUndefined();

    said.length = 0;
    await trainer.startOver(3, { version: 3, dir: '/v1' });
    expect((await trainer.update(batch)).version).toBe(4);
    expect(said).toEqual(['start 3', 'restore /v1 as 3', 'update']);
    // And from then on it is what a process that is lost is started again from, with what it learned since.
    said.length = 0;
    p.kill();
    expect((await trainer.update(batch)).version).toBe(5);
    expect(said).toEqual(['start 3', 'restore /v1 as 3', 'update', 'update']);
    await trainer.close();
  });

  it('starts from fresh weights where there is no earlier checkpoint', async () => {
    const said: string[] = [],
      p = processes({ unreadable: new Set(['/v1']), say: (c) => said.push(c) }),
      trainer = await lastingTrainer({ start: p.start });
    await trainer.update(batch);
    await trainer.checkpoint();
    await trainer.startOver(2);
    expect((await trainer.checkpoint()).version).toBe(2);
    expect(said).toEqual(['start 0', 'update', 'checkpoint', 'start 2', 'checkpoint']);
    await trainer.close();
  });
});

describe('a trainer that is closed', () => {
  it('while it is started again ends the process that learns what the last one knew', async () => {
    const said: string[] = [];
    let until = Promise.resolve(),
      closed = 0,
      learning: () => void = () => undefined;
    const under = new Promise<void>((r) => (learning = r)),
      p = processes({
        unreadable: new Set(),
        say: (c) => {
          said.push(c);
          if (c === 'update' && said.filter((x) => x === 'start 0').length === 2) learning();
        },
        until: () => until,
        closed: () => closed++,
      }),
      trainer = await lastingTrainer({ start: p.start });
    await trainer.update(batch);
    let end: () => void = () => undefined;
    until = new Promise<void>((r) => (end = r));
    p.kill();
    const lost = trainer.update(batch).catch((e: unknown) => e);
    await under;
    await trainer.close();
    expect(closed).toBe(1);
    end();
    expect(await lost).toMatchObject({ kind: 'trainer.lost' });
    // What it relearned is not trained on.
    expect(said.filter((c) => c === 'update')).toHaveLength(2);
  });
});
