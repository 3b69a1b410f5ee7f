import { describe, expect, it } from 'vitest';
import { refusesLength } from '../../../runtime/policy/remote/contextRefusal.js';

describe('a server that refuses a prompt', () => {
  it.each([
    [
      'vLLM',
      `{"error":{"message":"This model's maximum context length is 16384 tokens. However, you requested 16500 tokens"}}`,
    ],
    ['vLLM, pictures', 'The decoder prompt (length 17000) is longer than the maximum model length of 16384.'],
    ['SGLang', 'Input length (17000 tokens) exceeds the maximum allowed length (16379 tokens).'],
    ['SGLang', "The input (17000 tokens) is longer than the model's context length (16384 tokens)."],
    ['OpenAI', '{"error":{"code":"context_length_exceeded"}}'],
    ['our engine', 'The prompt has 901 tokens; the limit with one answer token is 900 (--max-context).'],
  ])('because it is too long says so: %s', (_who, text) => {
    expect(refusesLength(400, text)).toBe(true);
    expect(refusesLength(500, text)).toBe(false);
  });
  it.each([
    'At most 5 image(s) may be provided in one prompt.',
    '6 images in one sequence; the limit is 5 (--max-images).',
    'The model `x` does not exist.',
  ])('for another reason does not: %s', (text) => {
    expect(refusesLength(400, text)).toBe(false);
  });
});
