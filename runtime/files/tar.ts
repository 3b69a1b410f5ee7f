/** A file for a tar archive; `path` at most 100 characters, relative. */
export interface TarFile {
  readonly path: string;
  readonly executable?: boolean;
  readonly data: Buffer;
}
/** A file whose content is read when its turn comes; it must then be `bytes` long. */
export interface TarSource {
  readonly path: string;
  readonly bytes: number;
  readonly chunks: () => AsyncIterable<Buffer>;
}

/**
 * A ustar archive of plain files, the same bytes for the same input (owner root, time 0): Docker's build cache compares
 * them.
 */
export function tar(files: readonly TarFile[]): Buffer {
  return Buffer.concat([...files.flatMap(entry), END]);
}

/** The same, with files too large for memory after the others. Throws RangeError when one changed its length. */
export async function* tarStream(
  files: readonly TarFile[],
  sources: readonly TarSource[],
): AsyncGenerator<Buffer, void, undefined> {
  for (const f of files) yield* entry(f);
  for (const s of sources) {
    yield header(s.path, s.bytes, false);
    let read = 0;
    for await (const chunk of s.chunks()) {
      read += chunk.length;
      if (read > s.bytes) break;
      yield Buffer.from(chunk); // it is only valid until the next one
    }
    if (read !== s.bytes) throw new RangeError(`tar: '${s.path}' changed while it was read`);
    yield padding(s.bytes);
  }
  yield END;
}

const BLOCK = 512;
const END = Buffer.alloc(2 * BLOCK);
const padding = (bytes: number): Buffer => Buffer.alloc((BLOCK - (bytes % BLOCK)) % BLOCK);
const entry = (f: TarFile): Buffer[] => [
  header(f.path, f.data.length, f.executable === true),
  f.data,
  padding(f.data.length),
];

function header(path: string, bytes: number, executable: boolean): Buffer {
  const name = Buffer.from(path);
  if (name.length > 100) throw new RangeError(`tar: '${path}' is longer than 100 bytes`);
  const h = Buffer.alloc(BLOCK);
  name.copy(h);
  const octal = (value: number, at: number, length: number): void => {
    h.write(value.toString(8).padStart(length - 1, '0') + '\0', at, 'latin1');
  };
  octal(executable ? 0o755 : 0o644, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(bytes, 124, 12);
  octal(0, 136, 12);
  h.write('        ', 148, 'latin1'); // the checksum is taken with itself as spaces
  h.write('0', 156, 'latin1');
  h.write('ustar\0' + '00', 257, 'latin1');
  let sum = 0;
  for (const b of h) sum += b;
  h.write(sum.toString(8).padStart(6, '0') + '\0 ', 148, 'latin1');
  return h;
}
