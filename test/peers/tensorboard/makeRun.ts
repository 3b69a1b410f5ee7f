/** A run folder to export: `node makeRun.mjs FOLDER`. */
import { writeSyntheticRun } from '../../helpers/data/syntheticRun.js';

await writeSyntheticRun(process.argv[2]!, { groups: 60, size: 4, steps: 5 });
