import { describe, expect, it } from 'vitest';
import { chartCsv } from '../../../webview/ui/chartCsv.js';
import type { ChartSeries, ChartSpec } from '../../../webview/ui/chartSpec.js';

const line = (label: string, more: Partial<ChartSeries> = {}): ChartSeries =>
  ({ kind: 'line', label, hue: 'blue', x: [], y: [], ...more }) as ChartSeries;
const spec = (x: Partial<ChartSpec['x']>, series: readonly ChartSeries[]): ChartSpec => ({
  x: { kind: 'number', label: 'updates', format: String, tick: String, ...x },
  y: { format: String },
  series,
  summary: '',
  empty: '',
});

describe('a chart as CSV', () => {
  it('has every point in full, bands, and nothing where a series has none', () => {
    expect(
      chartCsv({
        spec: spec({ kind: 'time', label: 'Time' }, [line('success'), line('evaluation, held-out')]),
        x: [0, 1500],
        columns: [
          [[0.123456789, 0.5]],
          [
            [null, 1],
            [null, 0.75],
            [null, 1],
          ],
        ],
      }),
    ).toBe(
      'Time, s,success,"evaluation, held-out","evaluation, held-out, low","evaluation, held-out, high"\n0,0.123456789,,,\n1.5,0.5,1,0.75,1\n'.replace(
        'Time, s,',
        '"Time, s",',
      ),
    );
  });
  it('says where a bin begins and ends, or what it is called', () => {
    expect(
      chartCsv({
        spec: spec({ kind: 'bins', label: 'steps', edges: [0, 5, 10] }, [line('n')]),
        x: [0.5, 1.5],
        columns: [[[3, 4]]],
      }),
    ).toBe('"steps, from","steps, to",n\n0,5,3\n5,10,4\n');
    expect(
      chartCsv({
        spec: spec({ kind: 'bins', label: 'task', names: ['a', 'b'] }, [line('n')]),
        x: [0.5, 1.5],
        columns: [[[3, 4]]],
      }),
    ).toBe('task,n\na,3\nb,4\n');
  });
  it('is no formula in a spreadsheet, whatever a task is called', () => {
    const csv = chartCsv({ spec: spec({}, [line('=HYPERLINK("x")')]), x: [1], columns: [[[-2]]] });
    expect(csv).toBe('updates,"\'=HYPERLINK(""x"")"\n1,-2\n');
  });
});
