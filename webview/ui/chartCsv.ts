/** A chart's numbers as CSV. Pure. */
import type { Cell } from './chartMath.js';
import type { ChartSpec } from './chartSpec.js';
import { t } from './words.js';

/** The data to copy. The columns of a series: values, then the edges of its band. */
export interface ChartData {
  readonly name: string;
  readonly spec: ChartSpec;
  readonly x: readonly number[];
  readonly columns: readonly (readonly (readonly Cell[])[])[];
}
/** A cell as CSV has it (RFC 4180), kept from being a formula in a spreadsheet. */
const cell = (v: string | number): string => {
  if (typeof v === 'number') return String(v);
  const s = /^[=+\-@\t\r]/.test(v) ? `'${v}` : v;
  return /[",\n\r]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s;
};

/** All points, in full; times in seconds. */
export function chartCsv({ spec, x, columns }: Omit<ChartData, 'name'>): string {
  const { kind, edges, names, label } = spec.x,
    place = (i: number): (string | number)[] =>
      names ? [names[i] ?? ''] : edges ? [edges[i]!, edges[i + 1]!] : [kind === 'time' ? x[i]! / 1000 : x[i]!];
  const head = [
      ...(names
        ? [label]
        : edges
          ? [t('{0}, from', label), t('{0}, to', label)]
          : [kind === 'time' ? t('{0}, s', label) : label]),
      ...spec.series.flatMap((s, i) =>
        columns[i]!.length === 3 ? [s.label, t('{0}, low', s.label), t('{0}, high', s.label)] : [s.label],
      ),
    ],
    rows = x.map((_, i) => [...place(i), ...columns.flatMap((c) => c.map((values) => values[i] ?? ''))]);
  return `${[head, ...rows].map((r) => r.map(cell).join(',')).join('\n')}\n`;
}
