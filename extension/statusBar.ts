/** The one status bar item; redrawn when the runtime's state or the active run's status changes. */
import { MarkdownString, StatusBarAlignment, ThemeColor, window, workspace } from 'vscode';
import { Disposables, type Ends } from './dispose.js';
import type { ControlSessions } from './model/controlSessions.js';
import type { StudioModel } from './model/studioModel.js';
import type { Runtime } from './runtimePort.js';
import { statusText, tooltipCommands } from './statusText.js';
import { t } from './words.js';

export function showStatus(runtime: Runtime, model: StudioModel, sessions: ControlSessions): Ends {
  const own = new Disposables();
  const item = own.add(window.createStatusBarItem('status', StatusBarAlignment.Left, 50));
  item.name = t('DART Studio');
  const draw = (): void => {
    const s = statusText({
      daemon: runtime.state,
      detail: runtime.stateDetail,
      active: model.active,
      trusted: workspace.isTrusted,
      attached: runtime.remote?.name,
      sessions: sessions.open,
    });
    const tooltip = new MarkdownString(s.tooltip, true);
    tooltip.isTrusted = { enabledCommands: [...tooltipCommands] };
    item.text = s.text;
    item.tooltip = tooltip;
    item.command =
      s.argument === undefined ? s.command : { command: s.command, title: t('Show'), arguments: [s.argument] };
    item.accessibilityInformation = { label: s.spoken };
    item.backgroundColor = s.severity === 'none' ? undefined : new ThemeColor(`statusBarItem.${s.severity}Background`);
  };
  own.defer(runtime.onState(draw));
  own.defer(
    model.onChange((c) => {
      if (c === 'runs' || c === 'status' || c === 'daemon') draw();
    }),
  );
  own.defer(sessions.onChange(draw));
  own.add(workspace.onDidGrantWorkspaceTrust(draw));
  draw();
  item.show();
  return own;
}
