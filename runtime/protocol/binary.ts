/**
 * Binary WebSocket frames, daemon to client: a 24-byte little-endian header, then a payload. Pixels never go through
 * JSON.
 *
 * | offset | type | meaning |
 * | 0 | u8 | kind: 1 = screen |
 * | 1 | u8 | format: 1 = PNG of the rectangle |
 * | 2 | u16 | x of the changed rectangle |
 * | 4 | u16 | y |
 * | 6 | u16 | width |
 * | 8 | u16 | height |
 * | 10 | u16 | reserved |
 * | 12 | u32 | stream id |
 * | 16 | f64 | when the pixels were read, ms since the epoch |
 */
export const headerBytes = 24;
export interface ScreenHeader {
  readonly stream: number;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly at: number;
}

export function encodeScreen(h: ScreenHeader, payload: Uint8Array): Uint8Array {
  const out = new Uint8Array(headerBytes + payload.length),
    v = new DataView(out.buffer);
  v.setUint8(0, 1);
  v.setUint8(1, 1);
  v.setUint16(2, h.x, true);
  v.setUint16(4, h.y, true);
  v.setUint16(6, h.width, true);
  v.setUint16(8, h.height, true);
  v.setUint32(12, h.stream, true);
  v.setFloat64(16, h.at, true);
  out.set(payload, headerBytes);
  return out;
}
/** undefined when it is not a screen frame this version knows. The payload is a view, not a copy. */
export function decodeScreen(data: Uint8Array): { header: ScreenHeader; png: Uint8Array } | undefined {
  if (data.length < headerBytes || data[0] !== 1 || data[1] !== 1) return undefined;
  const v = new DataView(data.buffer, data.byteOffset, data.byteLength);
  return {
    header: {
      x: v.getUint16(2, true),
      y: v.getUint16(4, true),
      width: v.getUint16(6, true),
      height: v.getUint16(8, true),
      stream: v.getUint32(12, true),
      at: v.getFloat64(16, true),
    },
    png: data.subarray(headerBytes),
  };
}
