export { deskSuite, heldoutSeed, quickstartFamilies, trainSeed, type DeskSuite } from './suite.js';
