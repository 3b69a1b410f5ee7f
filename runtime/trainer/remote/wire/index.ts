/** The Tinker protocol's messages: what a driver says and hears, in protobuf and JSON. No sockets. */
export * from './types.js';
export * from './answers.js';
export { askedOfPass, askedOfSample, CONTROL, pictureTokensOf, targetsOf, type AnswerBounds } from './asked.js';
export { compressed, type Body } from './compression.js';
export { decodeOutput, encodeRequest, jsonChunk, jsonRequest, logprobRows, parseOutput } from './forwardBackward.js';
export { decodeSample, parseSample, sampleBody } from './sampling.js';
export { encodeInTurns, jsonInTurns } from './bodies.js';
