/** For pages and the extension: they may import this room and not `domain`. */
export * from '../concurrency/failures.js';
export * from '../domain/errorCode.js';
