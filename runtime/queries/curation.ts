import { parseRunFile } from '../config/index.js';
import type { CurationChart, CurationChartData } from '../domain/index.js';
import type { ChartReading } from '../data/curation/mechanism.js';
import { readCharts } from '../data/curation/registry.js';
import type { RunReader } from '../data/store/runStore.js';
import type { CurationView, Histogram } from '../protocol/types.js';
import { downsample, histogram, pick } from './downsample.js';
import type { RunFacts } from './facts.js';

const MAX_POINTS = 1000,
  BINS = 40,
  TIS_UPDATES = 8;

/** The view of adaptive curation so far: the charts of its mechanisms, and the importance weights of the trainer. */
export async function curationView(run: RunReader, facts: RunFacts): Promise<CurationView> {
  const { curation, trainer } = facts.config ?? parseRunFile({});
  const [read, tis] = await Promise.all([readCharts(run, curation), tisHistogram(run, trainer.tis.cap)]);
  return {
    charts: read.map(({ reading, ...chart }): CurationChart => ({ ...chart, data: chartData(reading) })),
    tis,
  };
}

/** A chart's data for a page: no more points than a chart shows, values in bins. */
function chartData(r: ChartReading): CurationChartData {
  switch (r.form) {
    case 'values': {
      const { form: _, values, ...rest } = r;
      return { form: 'histogram', ...histogram(values, BINS), ...rest };
    }
    case 'families':
      return {
        ...r,
        families: r.families.map((f) => {
          const keep = downsample(f.value, MAX_POINTS);
          return { family: f.family, at: pick(f.at, keep), value: pick(f.value, keep) };
        }),
      };
    case 'series': {
      const keep = downsample(r.value, MAX_POINTS);
      return { ...r, at: pick(r.at, keep), value: pick(r.value, keep) };
    }
    case 'bars':
      return r;
  }
}

/** Truncated importance weights of the newest updates, over [0, C]. */
async function tisHistogram(run: RunReader, cap: number): Promise<Histogram | undefined> {
  const rows = await run.index.query(
    `SELECT e.position FROM events e JOIN metrics m ON m.seq = e.seq AND m.name = 'update.loss' WHERE e.type = 'metrics' ORDER BY e.seq DESC LIMIT ${TIS_UPDATES}`,
    [],
  );
  const lists = (await Promise.all(rows.map((r) => run.at(Number(r['position']))))).flatMap((e) =>
    e?.type === 'metrics' && e.lists?.['tisHistogram'] ? [e.lists['tisHistogram']] : [],
  );
  const n = lists[0]?.length ?? 0;
  if (n === 0) return undefined;
  return {
    edges: Array.from({ length: n + 1 }, (_, i) => (i * cap) / n),
    counts: Array.from({ length: n }, (_, i) => lists.reduce((a, l) => a + (l[i] ?? 0), 0)),
  };
}
