import type { Estimate } from '../schedule/statistics.js';

export interface Dot {
  readonly label: string;
  readonly at: Estimate;
  /** A row of its own kind, e.g. what is compared with. */
  readonly colour?: string;
}
const escape = (s: string): string => s.replace(/[&<>]/g, (c) => `&#${c.charCodeAt(0)};`);

/**
 * One dot with its interval per row, on one axis from `from` to `to` (values outside are drawn at the edge); a dashed
 * line at `mark`.
 */
export function dotChart(o: {
  readonly title: string;
  readonly rows: readonly Dot[];
  readonly from: number;
  readonly to: number;
  readonly unit: string;
  readonly mark?: number;
  readonly format: (x: number) => string;
}): string {
  // About as wide as sans-serif of 12 px is.
  const left = Math.max(120, 30 + Math.ceil(6.4 * Math.max(0, ...o.rows.map((r) => r.label.length)))),
    plot = 430,
    width = left + plot + 120,
    top = 46,
    step = 22,
    bottom = top + o.rows.length * step;
  const x = (v: number): number => left + (plot * (Math.min(o.to, Math.max(o.from, v)) - o.from)) / (o.to - o.from);
  const ticks = Array.from({ length: 6 }, (_, i) => o.from + ((o.to - o.from) * i) / 5);
  const out = ticks.map(
    (t) =>
      `<path d="M${x(t).toFixed(1)} ${top - 8}V${bottom}" stroke="#ccc"/><text x="${x(t).toFixed(1)}" y="${bottom + 16}" text-anchor="middle" font-size="10">${escape(o.format(t))}</text>`,
  );
  if (o.mark !== undefined)
    out.push(`<path d="M${x(o.mark).toFixed(1)} ${top - 8}V${bottom}" stroke="currentColor" stroke-dasharray="4 3"/>`);
  for (const [i, r] of o.rows.entries()) {
    const y = top + i * step + 6,
      { mean, half } = r.at,
      colour = r.colour ?? '#35618f';
    out.push(`<text x="${left - 10}" y="${y + 4}" text-anchor="end">${escape(r.label)}</text>`);
    if (!Number.isFinite(mean)) continue;
    if (Number.isFinite(half))
      out.push(
        `<path d="M${x(mean - half).toFixed(1)} ${y}H${x(mean + half).toFixed(1)}" stroke="${colour}" stroke-width="2"/>`,
      );
    out.push(
      `<circle cx="${x(mean).toFixed(1)}" cy="${y}" r="4" fill="${colour}"/>`,
      `<text x="${left + plot + 8}" y="${y + 4}" font-size="10">${escape(o.format(mean))}${Number.isFinite(half) ? ` ± ${escape(o.format(half))}` : ''}</text>`,
    );
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${bottom + 30}" viewBox="0 0 ${width} ${bottom + 30}" font-family="sans-serif" font-size="12" fill="currentColor" color="#444">
<title>${escape(o.title)}</title><text x="16" y="20" font-size="14">${escape(o.title)}${o.unit ? `, ${escape(o.unit)}` : ''}</text>
${out.join('\n')}
</svg>
`;
}
