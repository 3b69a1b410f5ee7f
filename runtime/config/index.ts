export * from './curation/index.js';
export * from './demonstrations.js';
export * from './load.js';
export * from './presets/index.js';
export * from './renamed.js';
export { startsEngine } from './rules.js';
export * from './schema.js';
