import { join } from 'node:path';
import { orUndefined } from '../concurrency/failures.js';
import { readForeignText } from '../files/foreignFile.js';
import { labelName, runLabelOf, type RunLabel } from '../protocol/runLabel.js';

/** The label people gave a run; empty where its folder has none, or none that can be read. */
export const labelOf = async (dir: string): Promise<RunLabel> =>
  runLabelOf(
    await orUndefined(
      readForeignText(join(dir, labelName), 64 << 10, { inside: dir }).then((text): unknown => JSON.parse(text)),
      'most runs have none',
    ),
  );
