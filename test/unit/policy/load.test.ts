import { describe, expect, it } from 'vitest';
import { LoadLimit, loadOf } from '../../../runtime/policy/remote/load.js';

describe("a server's load", () => {
  it('is read from what vLLM and SGLang say, the busiest engine of several', () => {
    const vllm = [
      '# HELP vllm:kv_cache_usage_perc KV-cache usage',
      'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25',
      'vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75',
      'vllm:num_requests_waiting{engine="0"} 3.0',
      'vllm:num_preemptions_total{engine="0"} 7',
    ].join('\n');
    expect(loadOf(vllm)).toEqual({ memory: 0.75, waiting: 3, preemptions: 7 });
    expect(loadOf('sglang:token_usage{model_name="m"} 0.5\nsglang:num_queue_reqs 2')).toEqual({
      memory: 0.5,
      waiting: 2,
    });
    expect(loadOf('process_cpu_seconds_total 12\nrubbish')).toBeUndefined();
    expect(loadOf('vllm:num_requests_waiting NaN')).toBeUndefined();
    expect(loadOf('vllm:num_requests_waiting_by_reason 4\nx vllm:num_requests_waiting 3')).toBeUndefined();
    expect(loadOf('vllm:num_requests_waiting{engine="0"}\n5 6\nvllm:num_requests_waiting 2\r\n')).toEqual({
      waiting: 2,
    });
  });

  it('lowers what is sent while memory is full, down to one, and raises it to the ceiling when there is room', () => {
    const l = new LoadLimit(16);
    expect(l.now).toBe(16);
    l.saw({ memory: 0.85 }, 16);
    expect(l.now).toBe(14);
    l.saw({ memory: 0.95 }, 14);
    expect(l.now).toBe(10);
    for (let i = 0; i < 30; i++) l.saw({ memory: 0.99 }, 1);
    expect(l.now).toBe(1);
    for (let i = 0; i < 30; i++) l.saw({ memory: 0.3, waiting: 0 }, l.now);
    expect(l.now).toBe(16);
  });

  it('raises nothing that is not used, nor while requests wait; what was thrown out counts once', () => {
    const l = new LoadLimit(16);
    l.saw({ preemptions: 5 }, 16);
    expect(l.now).toBe(16);
    l.saw({ preemptions: 6, memory: 0.5 }, 16);
    expect(l.now).toBe(12);
    l.saw({ preemptions: 6, memory: 0.5 }, 3);
    l.saw({ preemptions: 6, memory: 0.5, waiting: 2 }, 12);
    expect(l.now).toBe(12);
    l.saw({ preemptions: 6, memory: 0.5 }, 12);
    expect(l.now).toBe(16);
  });
});
