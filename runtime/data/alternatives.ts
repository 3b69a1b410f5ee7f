/** The alternatives to each sampled token: lists in code, columns in the journal, which has one set for each step. */
export interface Alternative {
  readonly label: string;
  readonly probability: number;
}

/** The alternatives of token i are the next `counts[i]` of `labels` and `probabilities`. */
export interface PackedAlternatives {
  readonly counts: Uint8Array;
  readonly labels: readonly string[];
  readonly probabilities: Float32Array;
}

/** Most alternatives of one token: their number is stored in a byte. */
const MOST = 255;

export function packAlternatives(lists: readonly (readonly Alternative[])[]): PackedAlternatives {
  const all = lists.map((l) => l.slice(0, MOST)),
    flat = all.flat();
  return {
    counts: Uint8Array.from(all, (l) => l.length),
    labels: flat.map((a) => a.label),
    probabilities: Float32Array.from(flat, (a) => a.probability),
  };
}

/**
 * The alternatives of the first `most` tokens; none where the record holds no such columns. Four digits of a
 * probability are enough to draw it.
 */
export function unpackAlternatives(packed: PackedAlternatives, most = Infinity): Alternative[][] {
  const { counts, labels, probabilities } = packed as { readonly [K in keyof PackedAlternatives]: unknown };
  if (!(counts instanceof Uint8Array && Array.isArray(labels) && probabilities instanceof Float32Array)) return [];
  let at = 0;
  // Bounded by the number of labels: in a record from elsewhere a byte could claim 255 of them.
  return Array.from(counts.subarray(0, most), (n) =>
    Array.from({ length: Math.min(n, labels.length - at) }, () => {
      const i = at++;
      return { label: String(labels[i]), probability: Number((probabilities[i] ?? 0).toPrecision(4)) };
    }),
  );
}
