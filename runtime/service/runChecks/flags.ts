import type { Dialect } from '../../policy/remote/dialect.js';

/** Flags of each server, for remedies. */
export interface Flags {
  readonly name: (model: string) => string;
  readonly images: (most: number) => string;
  readonly context: (tokens: number) => string;
  readonly memory: string;
  readonly logprobs: string;
  readonly temperature: string;
  readonly pixels: string;
  readonly adapters: (rank: number) => string;
}

/**
 * Layers of a language model that our engine's adapters have; SGLang reserves room for them when it starts, and refuses
 * adapters with others.
 */
export const LAYERS = 'q_proj k_proj v_proj o_proj gate_proj up_proj down_proj lm_head';

const VLLM: Flags = {
    name: (model) => `vLLM: --served-model-name ${model}`,
    images: (most) => `vLLM: --limit-mm-per-prompt '{"image": ${most}}'`,
    context: (tokens) => `vLLM: --max-model-len ${tokens}`,
    memory: 'vLLM: --gpu-memory-utilization',
    logprobs: 'vLLM: --max-logprobs 8 or more',
    temperature: 'Start vLLM with --logprobs-mode processed_logprobs',
    pixels: 'vLLM: --mm-processor-kwargs',
    adapters: (rank) => `Start vLLM with --enable-lora --max-loras 2 --max-lora-rank ${rank}`,
  },
  SGLANG: Flags = {
    name: (model) => `SGLang: --served-model-name ${model}`,
    images: (most) => `SGLang: --limit-mm-data-per-request '{"image": ${most}}'`,
    context: (tokens) => `SGLang: --context-length ${tokens}`,
    memory: 'SGLang: --mem-fraction-static',
    logprobs: 'SGLang gives them without a flag',
    temperature: 'Start SGLang without SGLANG_RETURN_ORIGINAL_LOGPROB in its environment',
    pixels: 'SGLang: --mm-process-config',
    adapters: (rank) => `Start SGLang with --enable-lora --max-lora-rank ${rank} --lora-target-modules ${LAYERS}`,
  };

export const flagsOf = (server: Dialect['server']): Flags => (server === 'SGLang' ? SGLANG : VLLM);
