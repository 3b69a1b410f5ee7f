/**
 * A chart of what one curation mechanism did, described by the mechanism and drawn by any page: words, form and data.
 * Mark the words with `message`, so that they are translated.
 */
export interface CurationChartWords {
  readonly title: string;
  /** Explains the chart in a sentence or two. */
  readonly says: string;
  /** Shown instead of the chart while there is nothing to draw. */
  readonly empty: string;
  /** Names the value, for the legend or the axis. */
  readonly label: string;
  /**
   * The chart in a sentence. By its form: `families` {0} mean at first, {1} mean now, {2} least now, {3} most now;
   * `histogram` {0} how many, {1} least, {2} most; `bars` {0} how many, {1} mean, {2} most; `series` {0} newest value.
   */
  readonly summary: string;
}
/** How a value is written: a whole number, a share as per cent, or a decimal number. */
export type ChartUnit = 'count' | 'share' | 'decimal';
/** A line across, at a value of the axis. `label`: {0} is the value. `summary`: also {1}, the share of counts below it. */
export interface ChartMark {
  readonly at: number;
  readonly label: string;
  readonly summary?: string;
}

/** Times in ms since the epoch; columns of one chart have one length. */
export type CurationChartData =
  /** One value per family over time: drawn as mean and range over the families, and one family on request. */
  | {
      readonly form: 'families';
      readonly families: readonly {
        readonly family: string;
        readonly at: readonly number[];
        readonly value: readonly number[];
      }[];
    }
  /** A value over time; `meanOf`: drawn as a moving mean over this many points; `sum`: it never decreases. */
  | {
      readonly form: 'series';
      readonly at: readonly number[];
      readonly value: readonly number[];
      readonly meanOf?: number;
      readonly sum?: boolean;
      readonly ceil?: number;
      readonly mark?: ChartMark;
    }
  | {
      readonly form: 'histogram';
      readonly edges: readonly number[];
      readonly counts: readonly number[];
      readonly mark?: ChartMark;
    }
  /** counts[i] = how many had the whole number i. */
  | {
      readonly form: 'bars';
      readonly counts: readonly number[];
      /** Rollouts that were trained at lag i are behind bar i: those of the updates to this version and later ones. */
      readonly behind?: { readonly by: 'lag'; readonly fromUpdate?: number };
      /** Others that stand on the bars and are not behind them. `summary`: {0} how many, {1} most. */
      readonly onTop?: { readonly counts: readonly number[]; readonly label: string; readonly summary: string };
    };

export interface CurationChart {
  /** `<mechanism>.<chart>`. */
  readonly id: string;
  readonly unit: ChartUnit;
  readonly words: CurationChartWords;
  readonly data: CurationChartData;
}
