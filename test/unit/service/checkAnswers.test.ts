import { expect, it } from 'vitest';
import { ask, wordsOf, type Reply } from '../../../runtime/service/runChecks/ask.js';
import { answering } from '../../helpers/policy/answering.js';

const answers = answering(),
  said = async (text: string): Promise<Reply> => ask({ url: await answers(text), apiKey: undefined });

it('a check reads an answer once, and only what is within its bounds', async () => {
  expect(await said('{"data":[1]}')).toEqual({ status: 200, text: '{"data":[1]}', json: { data: [1] } });
  const words = await said('no JSON');
  expect(words).toEqual({ status: 200, text: 'no JSON', json: undefined });
  expect('status' in words && wordsOf(words)).toBe('200: no JSON');
  const away = (why: string): object => ({ away: expect.stringContaining(why) as string });
  expect(await said(`${'['.repeat(50)}${']'.repeat(50)}`)).toEqual(away('the answer holds more than 32 lists'));
  expect(await said(`[${'1,'.repeat(300_000)}1]`)).toEqual(away('the answer holds more than 262144 values'));
  expect(await said(`"${'x'.repeat(5 << 20)}"`)).toEqual(away('longer than 4 MB'));
});
