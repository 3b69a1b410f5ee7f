import { toRunError } from '../domain/index.js';
import { parseStoredConfig, type RunConfig } from '../config/index.js';
import type { RunReader } from '../data/store/runStore.js';
import type { FamilyFacts, RunFacts } from '../queries/facts.js';
import { desktopContents } from '../cluster/provide.js';
import type { RunPath } from '../protocol/types.js';
import { openTasks } from '../tasks/open.js';
import { deskSuite, trainSeed } from '../tasks/suites/desk/index.js';
import type { TaskSource } from '../tasks/types.js';

/** Undefined for a run that was made by hand, or for a version with other options. */
export function configOf(run: RunReader): RunConfig | undefined {
  try {
    return parseStoredConfig(run.meta.config ?? {});
  } catch {
    return undefined;
  }
}

/** The configuration of a run, and its families as their task source describes them. */
export async function factsOf(run: RunReader): Promise<RunFacts> {
  const config = configOf(run);
  if (!config) return { trained: [], families: suiteFamilies() };
  try {
    // The folder of a layer may be gone; what the image has is enough to name tasks.
    const contents = await desktopContents(config.desktops).catch(() =>
      desktopContents({ ...config.desktops, imageExtra: '' }),
    );
    const tasks = await openTasks(config, contents);
    return { config, trained: tasks.families.map((f) => f.id), families: familiesOf(tasks.source) };
  } catch (e) {
    // Say, a folder of task files that is not here any more.
    return { config, trained: [], families: new Map(), unread: toRunError(e) };
  }
}
let suite: ReadonlyMap<string, FamilyFacts> | undefined;
/** Families of the built-in suite. */
export const suiteFamilies = (): ReadonlyMap<string, FamilyFacts> => (suite ??= familiesOf(deskSuite()));

const familiesOf = (source: TaskSource): Map<string, FamilyFacts> =>
  new Map(
    source.families.map((f) => {
      let ask = '',
        domain: string | undefined;
      try {
        ({ instruction: ask, domain } = source.task(f.id, trainSeed(0)));
      } catch {
        /* it is named by its applications alone */
      }
      return [
        f.id,
        {
          title: [f.apps.join(', '), ask].filter(Boolean).join(': '),
          apps: f.apps,
          domain,
          heldOut: f.split === 'heldout',
          infeasible: f.infeasible,
        },
      ];
    }),
  );

/** Facts of the runs that were read last. */
export class KnownFacts {
  readonly #of = new Map<RunPath, Promise<RunFacts>>();

  of(dir: RunPath, reader: RunReader): Promise<RunFacts> {
    let facts = this.#of.get(dir);
    if (!facts) {
      this.#of.set(dir, (facts = factsOf(reader)));
      for (const oldest of this.#of.keys()) {
        if (this.#of.size > mostKnown) this.#of.delete(oldest);
        break;
      }
    }
    return facts;
  }
  forget(dir: RunPath): void {
    this.#of.delete(dir);
  }
}
const mostKnown = 64;
