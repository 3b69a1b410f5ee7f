/**
 * Typed view of the settings `dartStudio.*`; read when they are used, so changes apply at once. Defaults are those of
 * package.json.
 */
import { workspace, type Uri, type WorkspaceConfiguration } from 'vscode';
import { isProviderChoice } from '../runtime/protocol/shared.js';
import type { ProviderChoice } from '../runtime/protocol/types.js';

export const section = 'dartStudio';
const config = (place?: Uri): WorkspaceConfiguration => workspace.getConfiguration(section, place);
const text = (key: string, place?: Uri): string => config(place).get<string>(key, '').trim();
const count = (key: string, fallback: number, place?: Uri): number => {
  const v = config(place).get<number>(key);
  return typeof v === 'number' && Number.isFinite(v) ? v : fallback;
};

/** Settings that each folder of a workspace may have its own values of. */
export interface FolderSettings {
  /** Folder of run folders, relative to the workspace folder or absolute. */
  readonly runsFolder: string;
  readonly provider: ProviderChoice;
  /** 0: as the run file says. */
  readonly desktopCount: number;
}
/** `place`: a workspace folder, or a path in one; without it, and outside of all folders, the workspace's values. */
export function settingsAt(place?: Uri): FolderSettings {
  const provider = text('desktops.provider', place);
  return {
    runsFolder: text('runsFolder', place) || 'runs',
    provider: isProviderChoice(provider) ? provider : 'auto',
    desktopCount: Math.max(0, Math.trunc(count('desktops.count', 0, place))),
  };
}

export const settings = {
  get watchFps(): number {
    return Math.min(30, Math.max(1, count('desktops.watchFps', 10)));
  },
  get dockerHost(): string {
    return text('docker.host');
  },
  /** Context of the kubeconfig that desktops may use; '': none. */
  get kubeContext(): string {
    return text('kubernetes.context');
  },
  /** Program that windows attach to a pod with; its scope is the machine, as that of all programs. */
  get kubectl(): string {
    return text('kubernetes.kubectl') || 'kubectl';
  },
  /** Credential plug-ins that a kubeconfig may run here. */
  get kubePlugins(): string[] {
    const all = config().get<unknown>('kubernetes.credentialPlugins');
    return Array.isArray(all) ? all.filter((p): p is string => typeof p === 'string' && p !== '') : [];
  },
  /** A checkout of OSWorld whose evaluators judge; '': those of `osworld install`. */
  get osworldCheckout(): string {
    return text('osworld.checkout');
  },
  /** OSWorld's virtual machine, which desktops may run; '': none. */
  get osworldVm(): string {
    return text('osworld.vm');
  },
  get nodePath(): string {
    return text('runtime.nodePath');
  },
  get idleMinutes(): number {
    return Math.max(1, count('runtime.idleMinutes', 10));
  },
  /** Port of the figures for Prometheus; 0: none. */
  get metricsPort(): number {
    return Math.max(0, Math.trunc(count('metrics.port', 0)));
  },
  get quickStartMinutes(): number {
    return Math.max(1, count('quickStart.minutes', 20));
  },
  get openDashboardOnStart(): boolean {
    return config().get<boolean>('dashboard.openOnStart', true);
  },
  get notifyRunFinished(): boolean {
    return config().get<boolean>('notifications.runFinished', true);
  },
  get notifyAlerts(): boolean {
    return config().get<boolean>('notifications.alerts', true);
  },
  /** The setting's scope is the machine: VS Code takes none from a workspace. */
  get alertCommand(): string {
    return text('alerts.command');
  },
  get alertWebhook(): string {
    return text('alerts.webhook');
  },
  get alertDesktop(): boolean {
    return config().get<boolean>('alerts.desktop', false);
  },
  get pageSize(): number {
    return Math.min(500, Math.max(20, count('trajectories.pageSize', 100)));
  },
  get maxTrajectoryBytes(): number {
    return Math.max(1, count('trajectory.maxFileSizeMb', 100)) * 2 ** 20;
  },
};
/** From now on no run that is finished or stopped is told of, in any window; the setting takes it back. */
export const muteRunFinished = async (): Promise<void> => config().update('notifications.runFinished', false, true);
/** Settings that a runtime is told whenever they change. */
export const alertSettings = `${section}.alerts`;
/** Settings that a runtime takes when it starts. */
export const runtimeSettings = [
  'docker.host',
  'kubernetes.context',
  'kubernetes.credentialPlugins',
  'osworld.checkout',
  'osworld.vm',
  'runtime.nodePath',
  'runtime.idleMinutes',
  'metrics.port',
].map((k) => `${section}.${k}`);
