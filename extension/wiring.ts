/** How the studio reacts to events of the runtime, its models and the workspace. */
import { sayAlert, tellTargets } from './alerts.js';
import { join } from 'node:path';
import { workspace } from 'vscode';
import * as methods from '../runtime/protocol/methods.js';
import type { HostError } from '../webview/protocol.js';
import { wasInterrupted } from './daemon/interrupted.js';
import { Disposables, type Ends } from './dispose.js';
import { LogTail } from './log.js';
import { followAbandoned, type Pages } from './model/abandoned.js';
import type { Machine } from './model/contextKeys.js';
import { machineOf } from './model/machine.js';
import type { ReviewCount } from './model/reviewCount.js';
import { sayEnded } from './notify.js';
import { sayRecovered } from './recovered.js';
import { alertSettings, runtimeSettings } from './settings.js';
import { onDemand } from './loadOnDemand.js';
import type { StudioContext } from './studioContext.js';
import { throttle } from './throttle.js';
import { showInformationMessage } from './toasts.js';
import { t } from './words.js';

interface Wiring {
  readonly studio: StudioContext;
  readonly review: ReviewCount;
  readonly machine: () => Machine;
  /** Writes the context keys anew. */
  readonly keys: () => void;
}

export function followEvents(w: Wiring): Ends {
  const own = new Disposables();
  followSelectedRun(own, w);
  followSessions(own, w);
  checkNewMachine(own, w);
  own.defer(w.studio.model.onEnded((r) => sayEnded(w.studio, r)));
  followRuntime(own, w);
  followWorkspace(own, w.studio);
  return own;
}

/** Trajectories, pool and review count are those of the selected run. */
function followSelectedRun(own: Disposables, w: Wiring): void {
  const { client, list, model, pool, trees } = w.studio;
  const { keys, review } = w;
  // The list of trajectories follows the selected run; of a live run at most one reading a second, and none while
  // nobody looks.
  const reloadList = own.add(
    throttle(() => {
      void list.reload();
    }, 1000),
  );
  let unseen = false;
  const follow = (): void => {
    if (model.selected !== list.run) void list.show({ run: model.selected });
    pool.show(model.selected);
    review.show(model.selected);
  };
  own.defer(
    model.onChange((c) => {
      if (c === 'runs' || c === 'daemon') follow();
      if (c === 'trajectories') {
        if (trees.trajectories.view.visible) reloadList();
        else unseen = true;
      }
      // Coverage and reuse change with the rollouts of the run.
      if (c === 'tasks') pool.touch();
      keys();
    }),
  );
  own.add(
    trees.trajectories.view.onDidChangeVisibility((v) => {
      if (v.visible && unseen) {
        unseen = false;
        reloadList();
      }
    }),
  );
  own.defer(list.onChange(keys));
  // Marks of annotations stand in the rows.
  own.defer(
    client.on(methods.annotationChanged, (a) => {
      if (a.run === list.run) {
        if (trees.trajectories.view.visible) reloadList();
        else unseen = true;
      }
    }),
  );
}
/** Reports an abandoned session, unless its page comes back. */
function followSessions(own: Disposables, w: Wiring): void {
  const { panels, report, sessions } = w.studio;
  const { keys, studio } = w;
  own.defer(
    sessions.onChange((s) => {
      keys();
      // The first demonstration that is kept makes its collection, which the list lacks.
      if (s?.kept && !w.studio.model.summary(s.run)) void w.studio.model.reload();
    }),
  );
  const pages: Pages = {
    show: (session) => panels.inputs.some((i) => 'session' in i && i.session === session),
    restoring: () => panels.restoring('live') || panels.restoring('try'),
    onChange: panels.onChange,
  };
  own.add(
    followAbandoned(sessions, pages, (s) => {
      report.background(
        onDemand().then((c) => c.sayAbandoned(studio, s)),
        t('report a session without a page'),
      );
    }),
  );
}
/** Says in the views what a machine without runs lacks. */
function checkNewMachine(own: Disposables, w: Wiring): void {
  const { client, log, model } = w.studio;
  const { studio } = w;
  // A machine without any run yet is probably new here: say in the views what it lacks before somebody waits for it.
  own.defer(
    model.onChange((c) => {
      if (
        c !== 'runs' ||
        w.machine() !== 'unknown' ||
        !model.loaded ||
        model.runs.length > 0 ||
        client.state !== 'ready' ||
        client.remote
      )
        return;
      w.studio.setMachine('ok');
      client.request(methods.doctor, {}).then(
        ({ checks }) => studio.setMachine(machineOf(checks)),
        (e: unknown) => log.warn(`machine check: ${String(e)}`),
      );
    }),
  );
}
/** Logs the runtime's state and reports problems with it. */
function followRuntime(own: Disposables, w: Wiring): void {
  const { client, log, report, runtimeLog, storage } = w.studio;
  const { keys } = w;
  const tail = own.add(new LogTail(join(storage, 'daemon.log'), runtimeLog));
  own.defer(client.on(methods.runAlert, (a) => sayAlert(w.studio, a)));
  own.defer(client.on(methods.runRecovered, (r) => sayRecovered(w.studio, r)));
  let lost: HostError | undefined;
  own.defer(
    client.onState((state, detail) => {
      log.info(`runtime: ${state}${detail ? ` (${detail.message})` : ''}`);
      // A window that only attached does not start it again by itself, unless a run ended with it.
      if (state === 'stopped' && lost) report.background(seekAgain(w.studio, lost), t('start the runtime again'));
      if (state === 'ready') {
        tellTargets(w.studio);
        for (const r of client.hello?.recovered ?? []) sayRecovered(w.studio, r);
      }
      lost = state === 'reconnecting' ? detail : undefined;
      if (state !== 'stopped') tail.start();
      if (detail && (state === 'failed' || state === 'incompatible')) report.report(detail);
      if (detail?.kind === 'daemon.older') void showInformationMessage(`${detail.message} ${detail.remedy}`);
      keys();
    }),
  );
}
/** When a run ended with its runtime, starts another one without asking, which says what became of the run. */
async function seekAgain({ attach, report, storage }: StudioContext, lost: HostError): Promise<void> {
  if (!(await wasInterrupted(storage))) report.report(lost);
  await attach();
}
function followWorkspace(own: Disposables, studio: StudioContext): void {
  const { attach, client, list, model } = studio;
  own.add(
    workspace.onDidGrantWorkspaceTrust(() => {
      void attach();
    }),
  );
  own.add(
    workspace.onDidChangeWorkspaceFolders(() => {
      void model.reload();
    }),
  );
  own.add(
    workspace.onDidChangeConfiguration((e) => {
      if (e.affectsConfiguration('dartStudio.runsFolder')) void model.reload();
      if (e.affectsConfiguration('dartStudio.trajectories.pageSize')) void list.reload();
      if (e.affectsConfiguration(alertSettings)) tellTargets(studio);
      if (client.state === 'ready' && !client.remote && runtimeSettings.some((k) => e.affectsConfiguration(k)))
        offerRestart(studio);
    }),
  );
}

function offerRestart(s: StudioContext): void {
  const restart = t('Restart Runtime');
  void showInformationMessage(t('This setting applies after the runtime restarts.'), restart).then((picked) => {
    if (picked === restart) s.run('dartStudio.restartRuntime');
  });
}
