/** What else might have been sampled, token by token: lists in code, columns in the journal, which has one for each step. */
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

/** Four digits of a probability are enough to draw it. */
export function unpackAlternatives({ counts, labels, probabilities }: PackedAlternatives): Alternative[][] {
  let at = 0;
  return Array.from(counts, (n) =>
    Array.from({ length: n }, () => {
      const i = at++;
      return { label: labels[i] ?? '', probability: Number((probabilities[i] ?? 0).toPrecision(4)) };
    }),
  );
}
