import * as zlib from 'node:zlib';

type Compress = (data: Uint8Array, done: (e: Error | null, out: Buffer) => void) => void;
/** Node has zstd from 22.15 on; an older one sends its requests as they are, which every server takes. */
const zstd = (zlib as { readonly zstdCompress?: Compress }).zstdCompress;

export interface Body {
  readonly bytes: Uint8Array | Blob;
  readonly headers: Readonly<Record<string, string>>;
}

/** A request body, compressed where the server asks for it (client/config) and this Node can. */
export async function compressed(body: Blob, asked: boolean, compress: Compress | undefined = zstd): Promise<Body> {
  if (!asked || !compress) return { bytes: body, headers: {} };
  const bytes = new Uint8Array(await body.arrayBuffer());
  const out = await new Promise<Buffer>((resolve, reject) => {
    compress(bytes, (e, b) => {
      if (e) reject(e);
      else resolve(b);
    });
  });
  return { bytes: out, headers: { 'content-encoding': 'zstd' } };
}
