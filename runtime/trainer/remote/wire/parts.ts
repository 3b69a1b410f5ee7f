import protobuf from 'protobufjs';

/**
 * Whether a message holds at most so many fields, those of messages within it included: decoding makes an object of
 * each, however few bytes it has. Throws on what is no message.
 */
export function hasParts(type: protobuf.Type, bytes: Uint8Array, most: number): boolean {
  return leftOf(protobuf.Reader.create(bytes), partsOf(type), bytes.length, most) >= 0;
}

/** The contents of a field: a message, numbers in a row, or neither. */
type Parts = (id: number) => Parts | 'numbers' | undefined;
function partsOf(type: protobuf.Type): Parts {
  return (id) => {
    const field = type.fieldsById[id]?.resolve(),
      of = field?.resolvedType,
      message = of instanceof protobuf.Type ? partsOf(of) : undefined;
    // An entry of a map has its value as field 2.
    if (field instanceof protobuf.MapField) return (n) => (n === 2 ? message : undefined);
    return message ?? (field?.repeated && field.type !== 'bytes' && field.type !== 'string' ? 'numbers' : undefined);
  };
}
/** The room that is left after what stands before `end`; negative where there was not enough. */
function leftOf(r: protobuf.Reader, parts: Parts, end: number, room: number): number {
  let left = room;
  while (r.pos < end) {
    if (--left < 0) return left;
    const tag = r.uint32(),
      wire = tag & 7;
    if (wire !== 2) {
      r.skipType(wire);
      continue;
    }
    const length = r.uint32(),
      to = r.pos + length,
      inside = parts(tag >>> 3);
    if (to > end) throw new RangeError('a field ends beyond its message');
    // Each byte holds at most one number.
    if (inside === 'numbers') left -= length;
    else if (inside) left = leftOf(r, inside, to, left);
    if (left < 0) return left;
    r.skip(to - r.pos);
  }
  return left;
}
