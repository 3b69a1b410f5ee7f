export { deskSuite, type DeskSuite } from './suite.js';
export { HOLDOUTS, probeSeed, trainSeed, variedSeed, withheld, type Holdout, type ProbeSet } from './splits.js';
