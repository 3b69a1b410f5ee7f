/** Words for one point of a chart. Pure. */
import { valueAt, type Cell } from './chartMath.js';
import type { ChartSpec } from './chartSpec.js';
import { t } from './words.js';

/** The point's place along x, in words. */
export const placeWords = ({ x: axis }: ChartSpec, x: readonly number[], at: number): string =>
  axis.names
    ? (axis.names[at] ?? '')
    : axis.edges
      ? t('{0} to {1}', axis.format(axis.edges[at]!), axis.format(axis.edges[at + 1]!))
      : axis.format(x[at]!);

/** The value of every series there, with its band; '' where it has none. */
export const valueWords = (spec: ChartSpec, columns: readonly (readonly (readonly Cell[])[])[], at: number): string[] =>
  columns.map((c) => {
    const v = spec.x.kind === 'bins' ? (c[0]![at] ?? undefined) : valueAt(c[0]!, at);
    if (v === undefined) return '';
    const low = c[1] && valueAt(c[1], at),
      high = c[2] && valueAt(c[2], at);
    return low === undefined || high === undefined
      ? spec.y.format(v)
      : t('{0} ({1} to {2})', spec.y.format(v), spec.y.format(low), spec.y.format(high));
  });
/** All of a point in one line. */
export const pointWords = (spec: ChartSpec, place: string, values: readonly string[]): string =>
  `${place}: ${spec.series
    .map((s, i) => (values[i] ? `${s.label} ${values[i]}` : ''))
    .filter(Boolean)
    .join(', ')}`;
