import { branches } from './branches.js';
import { dynamicLength } from './dynamicLength.js';
import { dynamicRollouts } from './dynamicRollouts.js';
import { groupFilter } from './groupFilter.js';
import { highEntropy } from './highEntropy.js';
import { hindsight } from './hindsight.js';
import { pool } from './pool.js';
import { staleness } from './staleness.js';

/**
 * The options of every curation mechanism, by its name: `curation.<name>` of the run file. What a mechanism does, and
 * its charts, are under the same name in data/curation/registry.ts.
 */
export const curationOptions = {
  dynamicRollouts,
  dynamicLength,
  branches,
  highEntropy,
  pool,
  hindsight,
  groupFilter,
  staleness,
};
export type MechanismName = keyof typeof curationOptions;
export const mechanismNames = Object.keys(curationOptions) as readonly MechanismName[];
