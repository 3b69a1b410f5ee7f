import { mechanismNames, type MechanismName, type RunConfig } from '../../config/index.js';
import type { CurationChart } from '../../domain/index.js';
import type { CurationConfig } from '../config.js';
import { branches } from './branches.js';
import { dynamicLength } from './dynamicLength.js';
import { dynamicRollouts } from './dynamicRollouts.js';
import { groupFilter } from './groupFilter.js';
import { highEntropy } from './highEntropy.js';
import { hindsight } from './hindsight.js';
import type {
  ChartReading,
  ChartSource,
  CurateContext,
  FamilyFacts,
  GroupDraft,
  GroupPlan,
  Mechanism,
} from './mechanism.js';
import { poolInjection } from './poolInjection.js';
import { staleness } from './staleness.js';

type Mechanisms = { readonly [K in MechanismName]: Mechanism<K> };

/**
 * Every mechanism, in the order in which a complete group passes through them. The compiler reports one that is left
 * out.
 */
export const mechanisms: Mechanisms = {
  dynamicRollouts,
  dynamicLength,
  branches,
  pool: poolInjection,
  hindsight,
  groupFilter,
  highEntropy,
  staleness,
};
const inOrder = Object.keys(mechanisms) as readonly MechanismName[];

/** A plan through every mechanism. */
export const planGroup = (plan: GroupPlan, family: FamilyFacts, c: CurationConfig): GroupPlan =>
  inOrder.reduce((p, name) => planBy(name, p, family, c), plan);
const planBy = <K extends MechanismName>(name: K, p: GroupPlan, family: FamilyFacts, c: CurationConfig): GroupPlan => {
  const mechanism: Mechanism<K> = mechanisms[name];
  return mechanism.plan?.(p, family, c[name]) ?? p;
};

/** A complete group through every mechanism, until one drops it. */
export const curateBy = (group: GroupDraft, c: CurationConfig, context: CurateContext): GroupDraft =>
  inOrder.reduce((g, name) => (g.dropped ? g : curateOne(name, g, c, context)), group);
const curateOne = <K extends MechanismName>(
  name: K,
  g: GroupDraft,
  c: CurationConfig,
  context: CurateContext,
): GroupDraft => {
  const mechanism: Mechanism<K> = mechanisms[name];
  return mechanism.curate?.(g, c[name], context) ?? g;
};

/** The charts of every mechanism for a run, in the order of the run file's options. */
export const readCharts = async (run: ChartSource, c: RunConfig['curation']): Promise<readonly ReadChart[]> =>
  (await Promise.all(mechanismNames.map((name) => chartsOf(name, run, c)))).flat();
const chartsOf = <K extends MechanismName>(
  name: K,
  run: ChartSource,
  c: RunConfig['curation'],
): Promise<readonly ReadChart[]> => {
  const mechanism: Mechanism<K> = mechanisms[name];
  return Promise.all(
    mechanism.charts
      .filter((chart) => chart.onlyWhere?.(c[name]) ?? true)
      .map(async (chart) => ({
        id: `${name}.${chart.name}`,
        unit: chart.unit,
        words: chart.words,
        reading: await chart.read(run, c[name]),
      })),
  );
};
export interface ReadChart extends Omit<CurationChart, 'data'> {
  readonly reading: ChartReading;
}
