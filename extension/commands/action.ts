/** The parts of a command, and how all commands are registered: no handler throws, whatever its arguments. */
import { commands as vscodeCommands } from 'vscode';
import { Disposables, type Ends } from '../dispose.js';
import type { Reporter } from '../errors.js';
import type { CommandId } from '../ids.js';

export interface Action {
  /** Completes "DART Studio could not …". */
  readonly doing: string;
  /** Menus of views pass the node and, where several are selected, all of them; the palette passes nothing. */
  run(arg?: unknown, selected?: unknown): Promise<void> | void;
}
export type Actions<K extends CommandId = CommandId> = Readonly<Record<K, Action>>;

/** Registers every id at once; an action is loaded when it is first used. */
export function registerActions(
  ids: readonly CommandId[],
  o: {
    readonly load: () => Promise<Actions>;
    /** Throws where this command cannot be run now. */
    readonly before: (id: CommandId) => void;
    readonly report: Reporter;
  },
): Ends {
  const own = new Disposables();
  let loaded: Promise<Actions> | undefined;
  for (const id of ids) {
    own.add(
      vscodeCommands.registerCommand(id, async (arg?: unknown, selected?: unknown) => {
        let doing: string | undefined;
        try {
          const action = (await (loaded ??= o.load()))[id];
          doing = action.doing;
          o.before(id);
          await action.run(arg, selected);
        } catch (e) {
          o.report.report(e, doing);
        }
      }),
    );
  }
  return own;
}
