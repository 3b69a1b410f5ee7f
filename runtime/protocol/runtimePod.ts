/** For the extension: it may import this room and not `domain`. */
export * from '../domain/runtimePod.js';
