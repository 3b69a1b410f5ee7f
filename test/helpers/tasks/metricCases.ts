import { appMetricCases } from './appMetricCases.js';
import type { MetricCase } from './metricCase.js';
import { textMetricCases } from './textMetricCases.js';

export const metricCases: readonly MetricCase[] = [...textMetricCases, ...appMetricCases];
