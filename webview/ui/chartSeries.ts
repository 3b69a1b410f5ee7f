/** A chart's series as uPlot draws them: lines, steps, bars, and bands between two edges. */
import uPlot from 'uplot';
import type { ChartSpec } from './chartSpec.js';
import { fade, type Theme } from './chartTheme.js';

type Styled = { readonly series: uPlot.Series[]; readonly bands: uPlot.Band[] };

/** `gaps`: where lines are interrupted, in canvas pixels from left to right; series of their own x have holes in between. */
export function seriesOf(spec: ChartSpec, t: Theme, compact: boolean, gaps: uPlot.Series.GapsRefiner): Styled {
  const series: uPlot.Series[] = [{}],
    bands: uPlot.Band[] = [];
  for (const s of spec.series) {
    const colour = t.hues[s.hue],
      hidden: uPlot.Series = { paths: () => null, points: { show: false } };
    if (s.kind === 'points') {
      series.push(hidden);
      if (s.low && s.high) series.push(hidden, hidden);
      continue;
    }
    if (s.kind === 'bars')
      series.push({
        stroke: colour,
        fill: t.contrast ? t.background : fade(colour, 0.55),
        width: t.contrast ? 1.5 : 1,
        paths: uPlot.paths.bars!({ size: [0.86, 60] }),
        points: { show: false },
      });
    else
      series.push({
        stroke: colour,
        width: (compact ? 1.25 : (s.width ?? 1.5)) + (t.contrast ? 0.5 : 0),
        dash: s.dash ? [...s.dash] : undefined,
        spanGaps: false,
        gaps,
        points: { show: s.x.length === 1, size: 5, fill: colour },
        paths: s.kind === 'steps' ? uPlot.paths.stepped!({ align: 1 }) : undefined,
      });
    if (s.low && s.high) {
      const edge: uPlot.Series = {
        stroke: t.contrast && !compact ? colour : 'transparent',
        width: t.contrast && !compact ? 1 : 0,
        dash: [2, 3],
        spanGaps: false,
        gaps,
        points: { show: false },
      };
      series.push(edge, edge);
      bands.push({
        series: [series.length - 1, series.length - 2],
        fill: fade(colour, t.contrast && !compact ? 0.12 : 0.22),
      });
    }
  }
  return { series, bands };
}
