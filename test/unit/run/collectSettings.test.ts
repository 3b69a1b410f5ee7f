import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseRunFile, type RunFile } from '../../../runtime/config/index.js';
import { actorOf, type ActorOptions } from '../../../runtime/run/collect/policy.js';
import { sameSettings } from '../../../runtime/run/collect/settings.js';

let dir: string, file: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-settings-'));
  file = join(dir, 'run.json');
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const address = 'http://127.0.0.1:9/v1',
  served: RunFile['policy'] = {
    kind: 'openai',
    openai: { baseUrls: [address], model: 'm', maxTokens: 100, images: 3 },
  },
  options = (chat: ActorOptions['chat'], over: RunFile = {}): ActorOptions => ({
    over,
    chat,
    entry: { file: '', args: [] } as never,
    signal: new AbortController().signal,
  });
async function policyOf(content: RunFile, chat: ActorOptions['chat'], over?: RunFile) {
  await writeFile(file, JSON.stringify(content));
  return (await actorOf(file, options(chat, over))).config.policy;
}

describe('sampling settings of a collection', () => {
  it("take the place of a run file's, under the section of its kind", async () => {
    const own = await policyOf({ policy: served }, { maxTokens: 7 }, { policy: { temperature: 0.5 } });
    expect(own.openai).toMatchObject({ maxTokens: 7, images: 3 });
    expect(own.temperature).toBe(0.5);
    const vlm = await policyOf({ preset: 'qwen3-vl-8b' }, { images: 2 });
    expect(vlm.vlm?.images).toBe(2);
    const plain = await actorOf(address, { ...options({ maxTokens: 9, images: 1 }), model: 'm' });
    expect(plain.config.policy.openai).toMatchObject({ maxTokens: 9, images: 1 });
  });

  it('have the bounds of the run file', async () => {
    await expect(policyOf({ policy: served }, { maxTokens: 1.5 })).rejects.toThrow('policy.openai.maxTokens');
    await expect(policyOf({ policy: served }, { images: 0 })).rejects.toThrow('policy.openai.images');
    await expect(policyOf({ policy: served }, {}, { policy: { temperature: 0 } })).rejects.toThrow('temperature');
  });

  it('are refused for a policy that has none', async () => {
    await expect(policyOf({ policy: { kind: 'embedded' } }, { maxTokens: 7 })).rejects.toThrow('of kind embedded');
  });

  it('stay the same in every part of a collection', () => {
    const was = parseRunFile({ policy: served }),
      goOn = (over: RunFile, measures = false): (() => void) => {
        const config = parseRunFile({ policy: served }, over);
        return () => {
          sameSettings(was, { config, name: 'pool', measures });
        };
      };
    expect(goOn({})).not.toThrow();
    expect(goOn({ desktops: { count: 9 } })).not.toThrow();
    for (const [over, named] of [
      [{ policy: { temperature: 0.5 } }, 'policy.temperature'],
      [{ policy: { openai: { ...served.openai!, maxTokens: 7 } } }, 'policy.openai.maxTokens'],
      [{ policy: { openai: { ...served.openai!, images: 1 } } }, 'policy.openai.images'],
      [{ seed: 5 }, 'seed'],
      [{ rollout: { maxSteps: 3 } }, 'rollout.maxSteps'],
    ] as const)
      expect(goOn(over)).toThrow(`pool was collected under other settings: ${named}.`);
    expect(goOn({ tasks: { families: ['term-touch'] } })).not.toThrow();
    expect(goOn({ tasks: { families: ['term-touch'] } }, true)).toThrow(
      'pool was measured under other settings: tasks.',
    );
  });
});
