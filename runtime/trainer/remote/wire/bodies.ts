import { jsonRequest, encodeRequest } from './forwardBackward.js';
import type { ForwardBackwardRequest } from './types.js';

/** Requests with many images, made a datum at a time, so that the event loop runs on in between. */

/** Bytes or characters after which others have their turn: a few milliseconds' work. */
const TURN = 1_000_000;

/**
 * `encodeRequest`, in turns. Encodings of one message laid end to end are that message: lists are joined, and the last
 * value of a field counts.
 */
export async function encodeInTurns(r: ForwardBackwardRequest): Promise<Uint8Array> {
  const parts = await inTurns(r, encodeRequest);
  return Buffer.concat([...parts, encodeRequest({ ...r, data: [] })]);
}

/** The text of `jsonRequest`, in turns. */
export async function jsonInTurns(r: ForwardBackwardRequest): Promise<string> {
  const parts = await inTurns(r, (one) => JSON.stringify(dataOf(jsonRequest(one))).slice(1, -1)),
    whole = JSON.stringify(jsonRequest({ ...r, data: [] })),
    empty = '"data":[]',
    // Within a string its quotes would be escaped, so this is the list itself.
    at = whole.indexOf(empty) + empty.length - 1;
  return whole.slice(0, at) + parts.join(',') + whole.slice(at);
}
function dataOf(request: object): readonly unknown[] {
  const r = request as Record<
    'forward_input' | 'forward_backward_input',
    { readonly data: readonly unknown[] } | undefined
  >;
  return (r.forward_input ?? r.forward_backward_input)!.data;
}

async function inTurns<T extends { readonly length: number }>(
  r: ForwardBackwardRequest,
  make: (one: ForwardBackwardRequest) => T,
): Promise<T[]> {
  const parts: T[] = [];
  let since = 0;
  for (const d of r.data) {
    const part = make({ ...r, data: [d], lossFnConfig: undefined });
    parts.push(part);
    since += part.length;
    if (since < TURN) continue;
    since = 0;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return parts;
}
