import { nextTurn } from '../../../concurrency/turns.js';
import { jsonRequest, encodeRequest } from './forwardBackward.js';
import type { ForwardBackwardRequest } from './types.js';

/**
 * Requests with many images, made a datum at a time, so that the event loop runs on in between. A body is a Blob of these
 * parts: laid end to end in one piece of memory, 29 MB held the loop for 50 to 125 ms (the copies, and one write of it
 * all), where their Blob is sent piece by piece and holds it for 6 to 16.
 */

/** Bytes or characters after which others have their turn: a few milliseconds' work. */
const TURN = 1_000_000;

export const PROTO = 'application/x-protobuf',
  JSON_TYPE = 'application/json';

/**
 * `encodeRequest`, in turns. Encodings of one message laid end to end are that message: lists are joined, and the last
 * value of a field counts.
 */
export async function encodeInTurns(r: ForwardBackwardRequest): Promise<Blob> {
  const parts = await inTurns(r, (one) => blobOf(encodeRequest(one)));
  return new Blob([...parts, blobOf(encodeRequest({ ...r, data: [] }))], { type: PROTO });
}
const blobOf = (bytes: Uint8Array): Blob => new Blob([bytes as Uint8Array<ArrayBuffer>]);

/** The text of `jsonRequest`, in turns. */
export async function jsonInTurns(r: ForwardBackwardRequest): Promise<Blob> {
  const parts = await inTurns(r, (one) => new Blob([JSON.stringify(dataOf(jsonRequest(one))).slice(1, -1)])),
    whole = JSON.stringify(jsonRequest({ ...r, data: [] })),
    empty = '"data":[]',
    // Within a string its quotes would be escaped, so this is the list itself.
    at = whole.indexOf(empty) + empty.length - 1;
  const list = parts.flatMap((p, i) => (i === 0 ? [p] : [',', p]));
  return new Blob([whole.slice(0, at), ...list, whole.slice(at)], { type: JSON_TYPE });
}
function dataOf(request: object): readonly unknown[] {
  const r = request as Record<
    'forward_input' | 'forward_backward_input',
    { readonly data: readonly unknown[] } | undefined
  >;
  return (r.forward_input ?? r.forward_backward_input)!.data;
}

async function inTurns(r: ForwardBackwardRequest, make: (one: ForwardBackwardRequest) => Blob): Promise<Blob[]> {
  const parts: Blob[] = [];
  let since = 0;
  for (const d of r.data) {
    const part = make({ ...r, data: [d], lossFnConfig: undefined });
    parts.push(part);
    since += part.size;
    if (since < TURN) continue;
    since = 0;
    await nextTurn();
  }
  return parts;
}
