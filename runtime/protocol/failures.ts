/** For pages and the extension: they may import this room and not `domain`. */
export * from '../domain/failures.js';
export * from '../domain/errorCode.js';
