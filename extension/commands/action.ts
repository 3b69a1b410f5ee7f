/** What a command is made of, and how all of them are registered: no handler throws, whatever it is called with. */
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

/** Every id at once, each with its action when it is first asked for. */
export function registerActions(ids: readonly CommandId[], load: () => Promise<Actions>, report: Reporter): Ends {
  const own = new Disposables();
  let loaded: Promise<Actions> | undefined;
  for (const id of ids) {
    own.add(
      vscodeCommands.registerCommand(id, async (arg?: unknown, selected?: unknown) => {
        let doing: string | undefined;
        try {
          const action = (await (loaded ??= load()))[id];
          doing = action.doing;
          await action.run(arg, selected);
        } catch (e) {
          report.report(e, doing);
        }
      }),
    );
  }
  return own;
}
