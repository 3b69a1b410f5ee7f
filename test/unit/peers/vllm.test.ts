import { describe, expect, it } from 'vitest';
import { distance, toldIn, type Told } from '../../peers/vllm/again.js';
import { besides } from '../../peers/vllm/furthest.js';
import type { Exchange } from '../../peers/vllm/wire.js';

const told = (tokens: number[], logprobs: number[]): Told => ({ tokens, logprobs, cached: undefined }),
  exchange = (o: Partial<Exchange>): Exchange => ({
    ...{ path: '/v1/chat/completions', asked: { model: 'run@v1' }, status: 200, answer: '', began: 0, ended: 1 },
    ...o,
  });

describe('what a real vLLM is asked again', () => {
  it('is compared as far as both answers say the same', () => {
    const first = [told([1, 2, 3], [-1, -2, -3]), told([4], [-1])],
      again = [told([1, 9, 3], [-1.5, -2, -9]), told([4], [-1])];
    expect(distance(first, again)).toEqual({ tokens: 2, unlike: 1, most: 0.5, mean: 0.25 });
    expect(distance([], [])).toEqual({ tokens: 0, unlike: 0, most: 0, mean: 0 });
  });

  it('tells how much of its prompt was cached, where it says so', () => {
    const choices = [{ token_ids: [7], logprobs: { content: [{ logprob: -0.5 }] } }],
      usage = { prompt_tokens_details: { cached_tokens: 16 } };
    expect(toldIn(JSON.stringify({ choices, usage }))).toEqual({ tokens: [7], logprobs: [-0.5], cached: 16 });
    expect(toldIn(JSON.stringify({ choices, usage: {} })).cached).toBeUndefined();
  });

  it('had beside it what overlapped it in time', () => {
    const of = exchange({ began: 10, ended: 20 }),
      path = '/v1/load_lora_adapter',
      all = [
        of,
        exchange({ began: 0, ended: 9 }),
        exchange({ began: 5, ended: 12 }),
        exchange({ began: 19, ended: 30, asked: { model: 'run@v2' } }),
        exchange({ path, began: 12, ended: 13 }),
        exchange({ began: 21, ended: 22 }),
      ];
    expect(besides(of, all)).toEqual({ requests: 2, of_other_adapters: 1, adapters_loaded: 1, adapters_unloaded: 0 });
  });
});
