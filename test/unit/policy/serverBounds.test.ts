import { describe, expect, it } from 'vitest';
import { ModelServer } from '../../../runtime/policy/remote/modelServer.js';
import { answering } from '../../helpers/policy/answering.js';

/** Answers of a model server that would cost more to read than what was asked for. */

const answers = answering(),
  saying = async (text: string): Promise<ModelServer> => new ModelServer({ url: `${await answers(text)}/v1` });
const signal = new AbortController().signal,
  deep = `${'['.repeat(40)}${']'.repeat(40)}`,
  many = (n: number): string => `[${'1,'.repeat(n)}1]`;
const refused = (words: string): object => ({
  kind: 'policy.remote',
  message: expect.stringContaining(words) as string,
});

describe('a model server', () => {
  it('names its models in a megabyte, none of them nested', async () => {
    expect(await (await saying('{"data":[{"id":"a"},{"id":7},null]}')).models(signal)).toEqual(['a']);
    const list = (more: string): string => `{"data":[{"id":"a","x":${more}}]}`;
    await expect((await saying(list(deep))).models(signal)).rejects.toMatchObject(refused('within one another'));
    await expect((await saying(list(many(70_000)))).models(signal)).rejects.toMatchObject(refused('65536 values'));
    await expect((await saying(list(`"${'x'.repeat(1 << 20)}"`))).models(signal)).rejects.toMatchObject(
      refused('more than 1 MB'),
    );
  });
  it('answers with the tokens of a long prompt, and nothing that is nested', async () => {
    const ids = many(200_000);
    expect(await (await saying(`{"tokens":${ids}}`)).tokenize({}, signal)).toHaveLength(200_001);
    await expect((await saying(`{"tokens":[1],"x":${deep}}`)).tokenize({}, signal)).rejects.toMatchObject(
      refused('within one another'),
    );
    await expect((await saying(`{"tokens":[1],"x":${many(1_100_000)}}`)).tokenize({}, signal)).rejects.toMatchObject(
      refused('1049600 values'),
    );
  });
  it('gives its figures in a megabyte', async () => {
    const figure = 'vllm:num_requests_waiting 3\n';
    expect(await (await saying(`${'a 1\n'.repeat(1000)}${figure}`)).load(signal)).toEqual({ waiting: 3 });
    await expect((await saying(`${figure}${'a\n'.repeat(600_000)}`)).load(signal)).rejects.toMatchObject(
      refused('more than 1 MB'),
    );
  });
});
