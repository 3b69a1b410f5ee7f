export * from './binary.js';
export * as methods from './methods.js';
export * from './trajectoryFile.js';
export type * from './types.js';
export * from './version.js';
export type { DaemonErrorKind, ErrorData, HelloParams, HelloResult, StartParams } from './methods.js';
