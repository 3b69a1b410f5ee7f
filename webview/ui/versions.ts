/** Spans of one policy version over consecutive steps, and their colours; pure. */
import type { StepView } from '../../runtime/protocol/types.js';
import { t } from './words.js';

export interface VersionSpan {
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
  /** Absent when no policy acted. */
  readonly version?: number;
  /** The human or script that decided, where no policy did. */
  readonly origin?: 'human' | 'oracle';
}

export function versionSpans(steps: readonly StepView[]): VersionSpan[] {
  const spans: { from: number; to: number; version?: number; origin?: 'human' | 'oracle' }[] = [];
  steps.forEach((x, i) => {
    const last = spans.at(-1),
      origin = x.origin === 'policy' ? undefined : x.origin,
      version = origin ? undefined : x.version;
    if (last && last.version === version && last.origin === origin) last.to = i + 1;
    else spans.push({ from: i, to: i + 1, version, origin });
  });
  return spans;
}
/**
 * Neighbouring versions never share one of the five colours of `--ds-version-0..4`; the number is always printed beside
 * it.
 */
export const versionColour = (version: number | undefined): string =>
  version === undefined ? 'var(--ds-version-none)' : `var(--ds-version-${((version % 5) + 5) % 5})`;
/** Words of the band over the filmstrip for a span. */
export const spanWords = (x: VersionSpan): string =>
  x.origin === 'human'
    ? t('a person')
    : x.origin === 'oracle'
      ? t('a script')
      : x.version === undefined
        ? t('no policy')
        : t('policy v{0}', x.version);
/** "v12", "v12 to v14", or "no policy". */
export function versionWords(spans: readonly VersionSpan[]): string {
  const vs = [...new Set(spans.map((x) => x.version).filter((v): v is number => v !== undefined))].sort(
    (a, b) => a - b,
  );
  return vs.length === 0 ? t('no policy') : vs.length === 1 ? `v${vs[0]}` : t('v{0} to v{1}', vs[0]!, vs.at(-1)!);
}
