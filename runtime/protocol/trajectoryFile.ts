/** The trajectory file, for pages and editors: they know the protocol and nothing else of the runtime. */
export * from '../domain/trajectoryFile.js';
