import { pictureTokensOf, targetsOf, type ClientConfig, type Datum } from './wire/index.js';

/** Bytes a datum takes in a request, nearly: images and tensors are what counts. */
export function datumBytes(d: Datum): number {
  let n = 64;
  for (const c of d.chunks) n += c.type === 'image' ? c.data.length + 64 : 4 * c.tokens.length + 16;
  for (const [name, t] of Object.entries(d.inputs))
    n += name.length + 32 + t.data.length * (t.dtype === 'float32' ? 4 : 8);
  return n;
}

/** Targets of a request, unless fewer are wanted: as JSON their log-probs take some 30 ms to parse. */
const MOST_TARGETS = 1 << 16;
/** Tokens of a request's pictures: a server that prepares them all at once needs some 10 kB for each, however small they are as files. */
const MOST_PICTURE_TOKENS = 1 << 17;

/** What a request may carry. */
export interface RequestLimits extends Pick<ClientConfig, 'fwdbwd_max_chunk_len' | 'fwdbwd_max_chunk_bytes_count'> {
  /** Most targets, for a server that has shown that more are too much for it. */
  readonly targets?: number | undefined;
}

/**
 * Datums in requests of the size that a server takes, in their order: at most so many, and so many bytes, targets and
 * tokens of pictures unless one alone has more. Gradients add up over requests.
 */
export function inRequests(data: readonly Datum[], limits: RequestLimits): Datum[][] {
  const out: Datum[][] = [],
    mostTargets = Math.min(MOST_TARGETS, limits.targets ?? MOST_TARGETS);
  let size = 0,
    targets = 0,
    pictures = 0;
  for (const d of data) {
    const bytes = datumBytes(d),
      more = targetsOf(d),
      shown = pictureTokensOf(d),
      last = out.at(-1),
      fits =
        size + bytes <= limits.fwdbwd_max_chunk_bytes_count &&
        targets + more <= mostTargets &&
        pictures + shown <= MOST_PICTURE_TOKENS;
    if (last && last.length < limits.fwdbwd_max_chunk_len && fits) {
      last.push(d);
      size += bytes;
      targets += more;
      pictures += shown;
    } else {
      out.push([d]);
      size = bytes;
      targets = more;
      pictures = shown;
    }
  }
  return out;
}
