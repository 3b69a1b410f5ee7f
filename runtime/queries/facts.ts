import { parseRunFile, type RunConfig, type RunFile } from '../config/index.js';
import type { RunReader } from '../data/store/runStore.js';
import type { TaskSource } from '../tasks/types.js';
import { deskSuite, trainSeed } from '../tasks/suites/desk/index.js';
import { openTasks } from '../run/mapping.js';

/** What is known of a run from its run file: its configuration, and its families as the task source describes them. */
export interface RunFacts {
  /** Absent when it was made by hand, or for a version with other options. */
  readonly config?: RunConfig | undefined;
  /** Families trained on. */
  readonly trained: readonly string[];
  readonly families: ReadonlyMap<string, FamilyFacts>;
}
export interface FamilyFacts {
  readonly title: string;
  readonly apps: readonly string[];
  readonly heldOut: boolean;
  readonly infeasible: boolean;
}

export async function factsOf(run: RunReader): Promise<RunFacts> {
  let config: RunConfig | undefined;
  try {
    config = parseRunFile(run.meta.config ?? {}, {} satisfies RunFile);
  } catch {
    return { trained: [], families: suiteFamilies() };
  }
  try {
    const tasks = await openTasks(config);
    return { config, trained: tasks.families.map((f) => f.id), families: familiesOf(tasks.source) };
  } catch {
    return { config, trained: [], families: new Map() };
  } // a folder of task files that is not here any more
}
let suite: ReadonlyMap<string, FamilyFacts> | undefined;
/** Families of the built-in suite. */
export const suiteFamilies = (): ReadonlyMap<string, FamilyFacts> => (suite ??= familiesOf(deskSuite()));

const familiesOf = (source: TaskSource): Map<string, FamilyFacts> =>
  new Map(
    source.families.map((f) => {
      let ask = '';
      try {
        ask = source.task(f.id, trainSeed(0)).instruction;
      } catch {
        /* it is named by its applications alone */
      }
      return [
        f.id as string,
        {
          title: [f.apps.join(', '), ask].filter(Boolean).join(': '),
          apps: f.apps,
          heldOut: f.split === 'heldout',
          infeasible: f.infeasible,
        },
      ];
    }),
  );
