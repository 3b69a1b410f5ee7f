export * from './load.js';
export * from './presets.js';
export * from './schema.js';
