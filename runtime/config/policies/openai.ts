import { openAiOptions } from '../remoteOptions.js';
import type { PolicyDeclaration } from './types.js';

export const OPENAI: PolicyDeclaration = {
  kind: 'openai',
  says: 'a model behind an OpenAI-compatible endpoint (rollouts and evaluation only)',
  traits: { trained: false, processes: false, onnx: false, types: 'text', random: false, midway: false, chat: true },
  options: openAiOptions,
  rules: [
    {
      key: 'policy.openai',
      broken: (c) => !c.policy.openai,
      what: 'required because policy.kind is "openai"',
      remedy: 'Set policy.openai.baseUrls and policy.openai.model.',
    },
  ],
};
