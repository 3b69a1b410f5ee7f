import type { PolicyDeclaration } from './types.js';

export const EMBEDDED: PolicyDeclaration = {
  kind: 'embedded',
  says: 'the small ONNX policy trained here',
  traits: { trained: true, processes: true, onnx: true, types: 'line', random: true, midway: true, chat: false },
};
