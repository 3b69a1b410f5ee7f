/** `policy: openai`: a model behind somebody else's OpenAI-compatible endpoints (vLLM, SGLang, ...). */
import { id, type PolicyVersion, type ReplicaId } from '../../domain/index.js';
import type { Policy } from '../types.js';
import { ChatSession, type ChatOptions, type ChatTransport } from './chatSession.js';
import type { EndpointOptions } from './endpoints.js';
import { Endpoints } from './endpoints.js';

export interface OpenAiPolicyOptions extends EndpointOptions, ChatOptions {
  readonly model: string;
  /** Version of the weights when neither the server nor the model's name says. Default 0. */
  readonly version?: PolicyVersion;
}

export function createOpenAiPolicy(o: OpenAiPolicyOptions): Policy {
  const endpoints = new Endpoints(o);
  const transport: ChatTransport = {
    async complete({ body, extras }, { session, signal }) {
      const reply = await endpoints.post(session, '/chat/completions', { model: o.model, ...body }, extras, signal);
      return {
        said: reply.said,
        version: reply.said.version ?? o.version ?? 0,
        replica: id<ReplicaId>(reply.endpoint),
        queueMs: reply.waited,
        computeMs: reply.ms,
      };
    },
    end: (session) => endpoints.end(session),
  };
  return { takesEncoded: true, open: (s) => new ChatSession(o, transport, s) };
}
