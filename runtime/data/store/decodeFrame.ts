import { digestOf } from '../../files/digest.js';
import { decodePng, sizeOf } from './png.js';
import { pixelHash } from './screenEncoder.js';

export type DecodedFrame = Awaited<ReturnType<typeof decodePng>> & {
  /** The file is the frame that `hash` names, by its bytes or by its pixels. */
  readonly right: boolean;
};
/** Decodes the file of a frame. Rejects with `store.damaged` for a file that is no such PNG. */
export async function decodeFrame(file: Buffer, hash: string): Promise<DecodedFrame> {
  if (digestOf(file) === hash) return { ...(await decodePng(file)), right: true };
  const { width, height } = sizeOf(file) ?? { width: 0, height: 0 },
    own = pixelHash(width, height),
    picture = await decodePng(file, (rows) => own.update(rows));
  return { ...picture, right: own.digest('hex') === hash };
}
