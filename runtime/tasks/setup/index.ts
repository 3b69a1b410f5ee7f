import { StudioError } from '../../domain/index.js';
import type { TaskContext } from '../context.js';
import { checkCancelled } from '../context.js';
import { Spoiled } from '../spoiled.js';
import type { SetupParameters, SetupType } from '../taskFile.js';
import { isSetupType, setupParameters } from '../taskFile.js';
import type { SetupStep } from '../types.js';
import { changeWallpaper, closeTabs, openTabs, updateHistory } from './chrome.js';
import { execute, launch, pause } from './commands.js';
import { download, open } from './files.js';
import { executeVerified } from './verified.js';
import { activateWindow, closeWindow } from './windows.js';

const steps: { readonly [T in SetupType]: (ctx: TaskContext, p: SetupParameters<T>) => Promise<void> } = {
  download,
  launch,
  open,
  execute,
  command: execute,
  sleep: pause,
  activate_window: activateWindow,
  close_window: closeWindow,
  chrome_open_tabs: openTabs,
  chrome_close_tabs: closeTabs,
  update_browse_history: updateHistory,
  change_wallpaper: changeWallpaper,
  execute_with_verification: executeVerified,
};

/** Steps that say for themselves whether they act; those of the browser ask it as the verifier. */
const COMMANDS = new Set(['execute', 'command', 'execute_with_verification', 'chrome_open_tabs', 'chrome_close_tabs']);

/**
 * Run config[] or postconfig[] in order. Rejects with what went wrong, naming the step; the engine gives it its kind.
 */
export async function runSteps(ctx: TaskContext, list: readonly SetupStep[]): Promise<void> {
  for (const [i, s] of list.entries()) {
    checkCancelled(ctx.signal);
    try {
      // A step that acts on the desktop needs its applications running; a command says for itself whether it does.
      await (ctx.verdict && !COMMANDS.has(s.type) ? ctx.verdict.act(() => runStep(ctx, s)) : runStep(ctx, s));
    } catch (e) {
      if (e instanceof Spoiled) throw new Spoiled(`step ${i + 1} of ${list.length} (${s.type}): ${e.message}`);
      if (e instanceof StudioError && ['desktop.lost', 'cancelled', 'task.unsupported'].includes(e.kind)) throw e;
      throw new Error(`step ${i + 1} of ${list.length} (${s.type}): ${e instanceof Error ? e.message : String(e)}`, {
        cause: e,
      });
    }
  }
}

async function runStep(ctx: TaskContext, s: SetupStep): Promise<void> {
  if (!isSetupType(s.type))
    throw new StudioError(
      'task.unsupported',
      `The setup step ${s.type} is not supported.`,
      'Run `dart-studio tasks check` to see what each task needs.',
      { details: { needs: [`setup:${s.type}`] } },
    );
  const run = steps[s.type] as (ctx: TaskContext, p: unknown) => Promise<void>;
  await run(ctx, setupParameters[s.type].parse(s.parameters));
}
