/** Try Policy…: a page in which a policy does what it is told, on a desktop of its own. */
import { workspace } from 'vscode';
import type { InputOf } from '../../webview/protocol.js';
import { commands } from '../ids.js';
import type { StudioContext } from '../studioContext.js';
import { nodeOf } from '../views/nodes.js';
import { t } from '../words.js';
import type { Actions } from './action.js';
import { runOf } from './ask.js';
import { runFilePattern } from './startTraining.js';

/** Run files of the workspace that are looked at for a model. */
const mostFiles = 50;

export const tryCommands = (s: StudioContext): Actions<typeof commands.tryPolicy> => ({
  [commands.tryPolicy]: { doing: t('try a policy'), run: (arg) => tryPolicy(s, arg) },
});

async function tryPolicy(s: StudioContext, arg: unknown): Promise<void> {
  s.requireTraining();
  await s.ensureRuntime();
  const checkpoint = nodeOf(arg, 'checkpoint'),
    run = checkpoint?.run ?? runOf(arg) ?? s.model.selected;
  await showTry(s, { ...(run === undefined ? {} : { run }), ...(checkpoint ? { version: checkpoint.version } : {}) });
}

/** The page, with this policy chosen, or with a session that is open. */
export async function showTry(
  s: StudioContext,
  o: Pick<InputOf<'try'>, 'run' | 'version' | 'desktop' | 'session'>,
): Promise<void> {
  const files = await workspace.findFiles(runFilePattern, '**/{node_modules,runs}/**', mostFiles),
    { provider } = s.settings(o.run);
  s.panels.show({
    kind: 'try',
    roots: s.roots(),
    files: files.filter((f) => f.scheme === 'file').map((f) => f.fsPath),
    base: s.home(),
    ...(provider === 'auto' ? {} : { provider }),
    ...o,
  });
}
