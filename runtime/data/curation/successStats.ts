import type { FamilyId } from '../../domain/index.js';

/** Statistics of one family's latest rollouts. Errors are not outcomes and are never counted. */
export interface SuccessRate {
  /** Outcomes in the window. */
  readonly n: number;
  readonly successes: number;
  /** successes / n; undefined without outcomes. */
  readonly rate: number | undefined;
  /** Mean of the Beta(1 + successes, 1 + failures) posterior: usable from the first rollout on. */
  readonly posterior: number;
  /** All outcomes, not only those in the window. */
  readonly total: number;
}

/** Rolling success rate per family over its latest `window` outcomes. */
export class SuccessStats {
  readonly window: number;
  readonly #families = new Map<FamilyId, { ring: boolean[]; at: number; total: number; successes: number }>();

  constructor(window: number) {
    this.window = Math.max(1, Math.floor(window));
  }

  add(family: FamilyId, success: boolean): void {
    let f = this.#families.get(family);
    if (!f) this.#families.set(family, (f = { ring: [], at: 0, total: 0, successes: 0 }));
    if (f.ring.length === this.window && f.ring[f.at]) f.successes--;
    f.ring[f.at] = success;
    f.at = (f.at + 1) % this.window;
    f.total++;
    if (success) f.successes++;
  }

  /**
   * Outcomes that another policy had, as many as the window holds, spread evenly so that later outcomes replace them
   * without a jump. They are not in `total`.
   */
  seed(family: FamilyId, o: { readonly successes: number; readonly failures: number }): void {
    const seen = o.successes + o.failures,
      n = Math.min(seen, this.window);
    const share = (k: number): number => Math.round((k * o.successes) / seen);
    for (let i = 0; i < n; i++) this.add(family, share(i + 1) > share(i));
    const f = this.#families.get(family);
    if (f) f.total -= n;
  }

  of(family: FamilyId): SuccessRate {
    const f = this.#families.get(family);
    const n = f?.ring.length ?? 0,
      successes = f?.successes ?? 0;
    return {
      n,
      successes,
      rate: n === 0 ? undefined : successes / n,
      posterior: (1 + successes) / (2 + n),
      total: f?.total ?? 0,
    };
  }

  families(): FamilyId[] {
    return [...this.#families.keys()];
  }
}
