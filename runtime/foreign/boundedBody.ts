/** A response's body of at most `most` bytes; a longer one rejects with what `tooLong` gives, before it is read whole. */
export async function boundedBody(response: Response, most: number, tooLong: () => Error): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    bytes += (part as Uint8Array).length;
    if (bytes > most) throw tooLong();
    parts.push(part as Uint8Array);
  }
  return Buffer.concat(parts);
}
