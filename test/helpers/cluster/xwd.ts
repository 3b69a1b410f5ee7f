/** A header as Xvfb writes it: big-endian fields, 256 colours. */
export function xwdHeader(
  o: { width?: number; height?: number; bytesPerLine?: number; bits?: number; version?: number; le?: boolean } = {},
): Buffer {
  const h = Buffer.alloc(160),
    width = o.width ?? 3,
    height = o.height ?? 2;
  const fields = [
    160,
    o.version ?? 7,
    2,
    24,
    width,
    height,
    0,
    0,
    32,
    0,
    32,
    o.bits ?? 32,
    o.bytesPerLine ?? width * 4,
    4,
    0xff0000,
    0xff00,
    0xff,
    8,
    256,
    256,
    width,
    height,
  ];
  fields.forEach((f, i) => (o.le ? h.writeUInt32LE(f, i * 4) : h.writeUInt32BE(f, i * 4)));
  return h;
}

/** Colours that follow the header, 12 bytes each. */
export const XWD_COLOURS = Buffer.alloc(256 * 12);
