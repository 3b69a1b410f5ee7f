import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { parseRunFile } from '../../../runtime/config/index.js';
import { serveOpenEnv, type ServedEnvironments } from '../../../runtime/gateway/openenv/serve.js';
import { openEnvironments } from '../../../runtime/service/openEnvironments.js';
import { probeSeed } from '../../../runtime/tasks/suites/desk/index.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { ensureBundle } from '../../helpers/run/cli.js';

/** Episodes of OpenEnv's clients on a real desktop. */
const why = await whyNoLocalDesktops();
if (why) console.warn(`skipped: OpenEnv on local desktops (${why})`);

interface Answer {
  readonly type: string;
  readonly data: {
    readonly observation: Readonly<Record<string, unknown>>;
    readonly reward: number | null;
    readonly done: boolean;
    readonly code?: string;
    readonly message?: string;
  };
}

describe.skipIf(why)('desktops as OpenEnv environments', () => {
  let served: ServedEnvironments, environments: Awaited<ReturnType<typeof openEnvironments>>;
  beforeAll(async () => {
    ensureBundle();
    environments = await openEnvironments({
      config: parseRunFile({
        tasks: { families: ['term-touch', 'press-button'] },
        desktops: { count: 1, provider: 'local' },
        rollout: { maxSteps: 3 },
      }),
      split: 'train',
      picture: true,
      version: '0.0.0',
      entry: { file: `${process.cwd()}/dist/runtime.js` },
      signal: new AbortController().signal,
      onLine: () => undefined,
    });
    served = await serveOpenEnv({ environments, port: 0 });
  });
  afterAll(async () => {
    await served?.close();
    await environments?.close();
  });
  const session = async (): Promise<{ ask: (m: object) => Promise<Answer>; close: () => Promise<void> }> => {
    const socket = new WebSocket(`ws://127.0.0.1:${served.port}/ws`);
    await new Promise((done, fail) => socket.once('open', done).once('error', fail));
    return {
      ask: (m) =>
        new Promise((done) => {
          socket.once('message', (d: Buffer) => done(JSON.parse(d.toString()) as Answer));
          socket.send(JSON.stringify(m));
        }),
      close: () =>
        new Promise((done) => {
          socket.once('close', () => done());
          socket.send(JSON.stringify({ type: 'close' }));
        }),
    };
  };

  it('a program solves a task it is reset to, sees every screen, and is judged', async () => {
    const s = await session(),
      first = await s.ask({ type: 'reset', data: { family: 'term-touch', seed: 4 } });
    expect(first, JSON.stringify(first.data.message)).toMatchObject({
      type: 'observation',
      data: { reward: null, done: false, observation: { step: 0, steps_left: 3 } },
    });
    const { instruction, picture, task } = first.data.observation as Record<string, string>,
      png = Buffer.from(picture!, 'base64');
    expect(png.subarray(1, 4).toString()).toBe('PNG');
    expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([
      first.data.observation['width'],
      first.data.observation['height'],
    ]);
    const nonsense = await s.ask({ type: 'step', data: { action: 'fly(to="the moon")' } });
    expect(nonsense).toMatchObject({ type: 'error', data: { code: 'VALIDATION_ERROR' } });

    const command = /"(.*)"/.exec(instruction!)![1]!,
      typed = await s.ask({ type: 'step', data: { action: `type(content='${command}\\n')` } });
    expect(typed.data).toMatchObject({ done: false, observation: { step: 1, steps_left: 2 } });
    expect(typed.data.observation['picture']).not.toBe(picture);
    const last = await s.ask({ type: 'step', data: { action: "finished(content='')" } });
    expect(last.data).toMatchObject({ done: true, reward: 1, observation: { verdict: 'success', truncated: false } });
    expect(await s.ask({ type: 'step', data: { action: 'wait()' } })).toMatchObject({ type: 'error' });

    // The same task again, from a desktop that was reset: the same first screen.
    const again = await s.ask({ type: 'reset', data: { task } });
    expect(again.data.observation).toEqual(first.data.observation);
    await s.close();
  });

  it('steps that are used up end an episode, and a session that leaves gives its desktop back', async () => {
    const s = await session(),
      begun = await s.ask({ type: 'reset', data: { family: 'press-button', seed: 1, picture: false } });
    expect(begun.data.observation).not.toHaveProperty('picture');
    let answer = begun;
    for (let i = 0; i < 3 && !answer.data.done; i++) answer = await s.ask({ type: 'step', data: { action: 'wait()' } });
    expect(answer.data).toMatchObject({ done: true, reward: 0, observation: { verdict: 'failure', truncated: true } });
    // In the middle of an episode.
    await s.ask({ type: 'reset', data: { seed: 2 } });
    await s.close();
    const next = await session();
    expect((await next.ask({ type: 'reset', data: { family: 'term-touch' } })).type).toBe('observation');
    await next.close();
    const unknown = await session();
    expect(await unknown.ask({ type: 'reset', data: { family: 'nothing' } })).toMatchObject({
      type: 'error',
      data: { code: 'VALIDATION_ERROR' },
    });
    // Its family is served; the seed is of a split that is not.
    const heldOut = `desk/term-touch#${probeSeed('test', 'words', 0)}`;
    expect(await unknown.ask({ type: 'reset', data: { task: heldOut } })).toMatchObject({
      type: 'error',
      data: { code: 'VALIDATION_ERROR' },
    });
    await unknown.close();
  });
});
