/** A file for a tar archive; `path` at most 100 characters, relative. */
export interface TarFile {
  readonly path: string;
  readonly executable?: boolean;
  readonly data: Buffer;
}

/**
 * A ustar archive of plain files, the same bytes for the same input (owner root, time 0): Docker's build cache compares
 * them.
 */
export function tar(files: readonly TarFile[]): Buffer {
  const blocks: Buffer[] = [];
  for (const f of files) {
    const name = Buffer.from(f.path);
    if (name.length > 100) throw new RangeError(`tar: '${f.path}' is longer than 100 bytes`);
    const h = Buffer.alloc(512);
    name.copy(h);
    const octal = (value: number, at: number, length: number): void => {
      h.write(value.toString(8).padStart(length - 1, '0') + '\0', at, 'latin1');
    };
    octal(f.executable ? 0o755 : 0o644, 100, 8);
    octal(0, 108, 8);
    octal(0, 116, 8);
    octal(f.data.length, 124, 12);
    octal(0, 136, 12);
    h.write('        ', 148, 'latin1'); // the checksum is taken with itself as spaces
    h.write('0', 156, 'latin1');
    h.write('ustar\0' + '00', 257, 'latin1');
    let sum = 0;
    for (const b of h) sum += b;
    h.write(sum.toString(8).padStart(6, '0') + '\0 ', 148, 'latin1');
    blocks.push(h, f.data);
    if (f.data.length % 512 !== 0) blocks.push(Buffer.alloc(512 - (f.data.length % 512)));
  }
  blocks.push(Buffer.alloc(1024));
  return Buffer.concat(blocks);
}
