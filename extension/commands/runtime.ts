/** Commands of the runtime and of the machine it runs on. */
import { env, type QuickPickItem } from 'vscode';
import * as methods from '../../runtime/protocol/methods.js';
import type { CheckRow } from '../../runtime/protocol/types.js';
import { commands, type CommandId } from '../ids.js';
import { machineOf } from '../model/machine.js';
import type { StudioContext } from '../studioContext.js';
import { showInformationMessage, showWarningMessage } from '../toasts.js';
import { t } from '../words.js';
import type { Actions } from './action.js';
import { choose, working } from './ask.js';

type Ids =
  | typeof commands.startRuntime
  | typeof commands.stopRuntime
  | typeof commands.restartRuntime
  | typeof commands.checkMachine
  | typeof commands.showLog
  | typeof commands.showRuntimeLog;

export const runtimeCommands = (s: StudioContext): Actions<Ids> => ({
  [commands.startRuntime]: { doing: t('start the runtime'), run: () => s.ensureRuntime() },
  [commands.stopRuntime]: {
    doing: t('stop the runtime'),
    run: async () => {
      await stop(s, t('Stop Runtime'));
    },
  },
  [commands.restartRuntime]: {
    doing: t('restart the runtime'),
    run: async () => {
      if (await stop(s, t('Restart Runtime'))) await s.ensureRuntime();
    },
  },
  [commands.checkMachine]: { doing: t('check this machine'), run: () => check(s) },
  [commands.showLog]: { doing: t('show the log'), run: () => s.log.show(true) },
  [commands.showRuntimeLog]: { doing: t("show the runtime's log"), run: () => s.runtimeLog.show(true) },
});

/** Asks first if this would end a run. True when the runtime is down afterwards. */
async function stop(s: StudioContext, title: string): Promise<boolean> {
  s.requireTrust();
  await s.attach();
  if (s.client.state === 'stopped') return true;
  // Whether an incompatible runtime trains is unknown.
  const mayTrain =
    s.model.active !== undefined ||
    s.client.state === 'incompatible' ||
    (!s.model.loaded && (s.client.hello?.activeRuns.length ?? 0) > 0);
  if (mayTrain) {
    const answer = await showWarningMessage(
      t('{0}? This stops the active run.', title),
      {
        modal: true,
        detail: t(
          'Its rollouts end, a checkpoint is written and its desktops are removed. Choose Resume Run… to continue it later.',
        ),
      },
      title,
    );
    if (answer !== title) return false;
  }
  await working(t('Stopping the runtime'), () => s.client.shutdown(), { cancellable: false });
  return true;
}

async function check(s: StudioContext): Promise<void> {
  s.requireTrust();
  const { checks } = await working(t('Checking this machine'), async (_say, signal) => {
    await s.ensureRuntime(signal);
    return s.client.request(methods.doctor, {}, signal);
  });
  s.setMachine(machineOf(checks));
  for (const c of checks)
    s.log.info(
      `check: ${c.ok ? 'ok' : c.level === 'required' ? 'missing' : 'limited'}: ${c.name}: ${c.detail}${c.ok || !c.remedy ? '' : ` (${c.remedy})`}`,
    );
  const missing = checks.filter((c) => !c.ok && c.level === 'required').length;
  type Item = QuickPickItem & { readonly row?: CheckRow; readonly command?: CommandId };
  const items: Item[] = [
    ...checks.map((row): Item => ({
      label: `$(${row.ok ? 'pass' : row.level === 'required' ? 'error' : 'warning'}) ${row.name}`,
      description: row.detail,
      detail: row.ok || !row.remedy ? undefined : row.remedy,
      row,
    })),
    { label: `$(tools) ${t('Build Desktop Image')}`, command: commands.buildDesktop },
    { label: `$(rocket) ${t('Start Training…')}`, command: commands.startTraining },
  ];
  const picked = await choose(
    t('This Machine'),
    items.map((value) => ({ ...value, value })),
    missing === 0
      ? t('Training can run here.')
      : t('{0} required parts are missing; choose one to copy how to fix it.', missing),
  );
  if (picked?.command) s.run(picked.command);
  else if (picked?.row && !picked.row.ok && picked.row.remedy) {
    await env.clipboard.writeText(picked.row.remedy);
    void showInformationMessage(t('Copied: {0}', picked.row.remedy));
  }
}
