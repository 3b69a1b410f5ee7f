export * from './curation/index.js';
export * from './load.js';
export * from './presets.js';
export * from './renamed.js';
export * from './schema.js';
