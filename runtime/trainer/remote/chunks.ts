import { targetsOf, type ClientConfig, type Datum } from './wire/index.js';

/** Bytes a datum takes in a request, nearly: images and tensors are what counts. */
export function datumBytes(d: Datum): number {
  let n = 64;
  for (const c of d.chunks) n += c.type === 'image' ? c.data.length + 64 : 4 * c.tokens.length + 16;
  for (const [name, t] of Object.entries(d.inputs))
    n += name.length + 32 + t.data.length * (t.dtype === 'float32' ? 4 : 8);
  return n;
}

/** Targets of a request: as JSON their log-probs take some 30 ms to parse. */
const MOST_TARGETS = 1 << 16;

/**
 * Datums in requests of the size that a server takes, in their order: at most so many, and so many bytes and targets
 * unless one alone has more. Gradients add up over requests.
 */
export function inRequests(
  data: readonly Datum[],
  limits: Pick<ClientConfig, 'fwdbwd_max_chunk_len' | 'fwdbwd_max_chunk_bytes_count'>,
): Datum[][] {
  const out: Datum[][] = [];
  let size = 0,
    targets = 0;
  for (const d of data) {
    const bytes = datumBytes(d),
      more = targetsOf(d),
      last = out.at(-1),
      fits = size + bytes <= limits.fwdbwd_max_chunk_bytes_count && targets + more <= MOST_TARGETS;
    if (last && last.length < limits.fwdbwd_max_chunk_len && fits) {
      last.push(d);
      size += bytes;
      targets += more;
    } else {
      out.push([d]);
      size = bytes;
      targets = more;
    }
  }
  return out;
}
