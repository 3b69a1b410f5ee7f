export * from './binary.js';
export * as methods from './methods.js';
export * from './trajectoryFile.js';
export type * from './types.js';
export * from './version.js';
export type { DaemonErrorKind, ErrorData } from './errors.js';
export type { HelloParams, HelloResult, StartParams } from './methods.js';
