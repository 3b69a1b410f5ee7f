import { z } from 'zod';
import { LARGEST, type AnswerBounds } from './asked.js';
import { decodeMessage, firstIssue, jsonChunk } from './forwardBackward.js';
import { int32s, numbers } from './tensors.js';
import { LIMITS, malformed, unread, type SampledSequence, type SampleOutput, type SampleRequest } from './types.js';

/** Sampling: the request is JSON in every version of the protocol, its result protobuf or JSON. */

/** Body of `POST asample`. top_p and top_k are off: recorded log-probs must be those of what was sampled from. */
export function sampleBody(r: SampleRequest): object {
  const from =
    'session' in r.from
      ? { sampling_session_id: r.from.session, seq_id: r.from.seqId }
      : 'modelPath' in r.from
        ? { model_path: r.from.modelPath }
        : { base_model: r.from.baseModel };
  return {
    prompt: { chunks: r.chunks.map(jsonChunk) },
    num_samples: r.samples,
    sampling_params: {
      max_tokens: r.maxTokens,
      temperature: r.temperature,
      top_p: 1,
      top_k: -1,
      seed: r.seed ?? null,
      stop: r.stop ?? null,
    },
    prompt_logprobs: r.promptLogprobs ?? false,
    ...from,
  };
}

interface ProtoSequence {
  readonly stop_reason: number;
  readonly tokens: Uint8Array;
  readonly logprobs?: Uint8Array;
}
/** `bytes` of a SampleResponse. Throws `trainer.remote` on anything else. */
export function decodeSample(bytes: Uint8Array, most: AnswerBounds = LARGEST): SampleOutput {
  const m = decodeMessage('SampleResponse', bytes, most) as {
    readonly sequences: readonly ProtoSequence[];
    readonly prompt_logprobs?: Uint8Array;
  };
  if (m.sequences.length > most.items) throw malformed(`${m.sequences.length} sequences`);
  return {
    sequences: m.sequences.map((s) => sequence(stopReason(s.stop_reason), int32s(s.tokens), floatsOf(s.logprobs))),
    promptLogprobs: floatsOf(m.prompt_logprobs),
  };
}
const floatsOf = (bytes: Uint8Array | undefined): Float32Array | undefined =>
  bytes && bytes.length > 0 ? (numbers(bytes, 'float32') as Float32Array) : undefined;
function stopReason(n: number): SampledSequence['stopReason'] {
  if (n === 0) return 'stop';
  if (n === 1) return 'length';
  throw unread(`a sequence ended for an unknown reason (${n})`);
}
function sequence(
  reason: SampledSequence['stopReason'],
  tokens: Int32Array,
  logprobs: Float32Array | undefined,
): SampledSequence {
  if (logprobs && logprobs.length !== tokens.length)
    throw malformed(`a sequence of ${tokens.length} tokens has ${logprobs.length} log-probs`);
  return { stopReason: reason, tokens, logprobs };
}

const values = z.array(z.number().nullable()).max(LIMITS.elements).nullish();
const jsonSample = z.object({
  sequences: z
    .array(
      z.object({
        stop_reason: z.enum(['stop', 'length']),
        tokens: z.array(z.int32()).max(LIMITS.elements),
        logprobs: values,
      }),
    )
    .max(LIMITS.items),
  prompt_logprobs: values,
});
/** The same as JSON; null is a value that was not scored. */
export function parseSample(json: unknown): SampleOutput {
  const p = jsonSample.safeParse(json);
  if (!p.success) throw unread(firstIssue(p.error), p.error);
  const row = (v: readonly (number | null)[] | null | undefined): Float32Array | undefined =>
    v && v.length > 0 ? Float32Array.from(v, (x) => x ?? NaN) : undefined;
  return {
    sequences: p.data.sequences.map((s) => sequence(s.stop_reason, Int32Array.from(s.tokens), row(s.logprobs))),
    promptLogprobs: row(p.data.prompt_logprobs),
  };
}
