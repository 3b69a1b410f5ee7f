import { resolve } from 'node:path';
import { StudioError, type Size } from '../domain/index.js';
import type { AlertTargets } from '../service/alerts/alertSender.js';
import { isWebAddress } from '../service/alerts/channels.js';
import { CONTEXT_VARIABLE, DISK_VARIABLE, PLUGINS_VARIABLE } from '../service/machineVariables.js';

/** Options of a command as commander gives them. */
export type Options = Readonly<Record<string, string | boolean | undefined>>;

export const textOption = (o: Options, name: string): string | undefined =>
  typeof o[name] === 'string' ? o[name] : undefined;

/** A number from a command-line option, or undefined when it was not given. */
export function numberOption(o: Options, name: string, min = 1): number | undefined {
  const v = o[name];
  if (v === undefined) return undefined;
  const n = Number(v);
  if (!Number.isFinite(n) || n < min)
    throw new StudioError(
      'config.invalid',
      `--${name} ${String(v)}: a number of at least ${min} is needed`,
      'Give a number, or leave the option out.',
    );
  return n;
}

/** A size such as 1920x1080, or undefined when it was not given. */
export function sizeOption(o: Options, name: string): Size | undefined {
  const v = textOption(o, name);
  if (v === undefined) return undefined;
  const m = /^(\d{2,5})x(\d{2,5})$/.exec(v);
  if (!m)
    throw new StudioError('config.invalid', `--${name} ${v}: not a size`, 'Write it as 1920x1080, or leave it out.');
  return { width: Number(m[1]), height: Number(m[2]) };
}

/**
 * Sets what this process may use of the machine: which context's credentials, which credential plug-ins, and which
 * virtual machine. A run file cannot.
 */
export function allowMachine(o: Options): void {
  const context = o['kubeContext'],
    plugins = o['kubePlugin'] as unknown as readonly string[] | undefined;
  if (typeof context === 'string') process.env[CONTEXT_VARIABLE] = context;
  if (plugins) process.env[PLUGINS_VARIABLE] = plugins.join(',');
  const disk = textOption(o, 'osworldVm');
  if (disk !== undefined) process.env[DISK_VARIABLE] = resolve(disk);
}

const alertVariables = {
  command: 'DART_STUDIO_ALERT_COMMAND',
  webhook: 'DART_STUDIO_ALERT_WEBHOOK',
  desktop: 'DART_STUDIO_ALERT_DESKTOP',
} as const;
/**
 * Where the command line sends alerts, else this process's environment; a run file cannot. What was read of the
 * environment is removed from it: an address is often a secret, and programs that are started inherit the rest.
 */
export function alertTargets(o: Options, env: NodeJS.ProcessEnv = process.env): AlertTargets {
  const given = textOption(o, 'alertWebhook'),
    command = textOption(o, 'alertCommand') ?? env[alertVariables.command] ?? '',
    webhook = given ?? env[alertVariables.webhook] ?? '',
    desktop = o['alertDesktop'] === true || env[alertVariables.desktop] === '1';
  for (const name of Object.values(alertVariables)) delete env[name];
  if (given !== undefined && !isWebAddress(given))
    throw new StudioError(
      'config.invalid',
      'The address of the webhook for alerts is not a URL.',
      'Give --alert-webhook an address that begins with http:// or https://.',
    );
  return { command, webhook, desktop };
}
