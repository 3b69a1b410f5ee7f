export * from './curation/index.js';
export * from './demonstrations.js';
export { SCORED, trainingRate } from './gpuFigures.js';
export * from './load.js';
export * from './presets/index.js';
export * from './renamed.js';
export * from './policies/index.js';
export { runFileSchema } from './runFileSchema.js';
export * from './schema.js';
