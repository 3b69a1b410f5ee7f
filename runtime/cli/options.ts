import { resolve } from 'node:path';
import { StudioError, type Size } from '../domain/index.js';
import type { AlertTargets } from '../service/alerts/alertSender.js';
import { isWebAddress } from '../service/alerts/channels.js';
import { CONTEXT_VARIABLE, DISK_VARIABLE, PLUGINS_VARIABLE } from '../service/machineVariables.js';

/** Options of a command as commander gives them. */
export type Options = Readonly<Record<string, string | boolean | undefined>>;

export const textOption = (o: Options, name: string): string | undefined =>
  typeof o[name] === 'string' ? o[name] : undefined;

/** An option's name as it is typed: moreMinutes is --more-minutes. */
export const dashed = (name: string): string => `--${name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)}`;

interface Bounds {
  readonly min?: number;
  readonly max?: number;
  readonly whole?: boolean;
}
function inBounds(o: Options, name: string, { min = 1, max, whole = false }: Bounds): number | undefined {
  const v = o[name];
  if (v === undefined) return undefined;
  const text = typeof v === 'string' ? v.trim() : '',
    n = text === '' ? NaN : Number(text);
  if (!Number.isFinite(n) || n < min || n > (max ?? Infinity) || (whole && !Number.isInteger(n)))
    throw new StudioError(
      'config.invalid',
      `${dashed(name)} ${String(v)}: a ${whole ? 'whole ' : ''}number ${max === undefined ? `of at least ${min}` : `from ${min} to ${max}`} is needed`,
      'Give such a number, or leave the option out.',
    );
  return n;
}
/** A number from a command-line option, or undefined when it was not given. */
export const numberOption = (o: Options, name: string, min = 1): number | undefined => inBounds(o, name, { min });
/** The same of what is counted. */
export const countOption = (o: Options, name: string, min = 1, max?: number): number | undefined =>
  inBounds(o, name, { min, ...(max === undefined ? {} : { max }), whole: true });
/** A TCP port; 0 lets the system choose. */
export const portOption = (o: Options, name: string): number | undefined => countOption(o, name, 0, 65_535);

/** Throws `config.invalid` for options that would be taken and ignored beside another. */
export function refuseBeside(o: Options, names: readonly string[], beside: string, remedy: string): void {
  const given = names.filter((n) => o[n] !== undefined && o[n] !== false);
  if (given.length > 0)
    throw new StudioError('config.invalid', `${given.map(dashed).join(', ')}: not beside ${beside}.`, remedy);
}

/** A size such as 1920x1080, or undefined when it was not given. */
export function sizeOption(o: Options, name: string): Size | undefined {
  const v = textOption(o, name);
  if (v === undefined) return undefined;
  const m = /^(\d{2,5})x(\d{2,5})$/.exec(v);
  if (!m)
    throw new StudioError(
      'config.invalid',
      `${dashed(name)} ${v}: not a size`,
      'Write it as 1920x1080, or leave it out.',
    );
  return { width: Number(m[1]), height: Number(m[2]) };
}

/**
 * Sets what this process may use of the machine: which context's credentials, which credential plug-ins, and which
 * virtual machine. A run file cannot.
 */
export function allowMachine(o: Options): void {
  const context = o['kubeContext'],
    plugins = o['kubePlugin'] as unknown as readonly string[] | undefined,
    // The option takes every word after it.
    file = plugins?.find((p) => p.endsWith('.json'));
  if (file !== undefined)
    throw new StudioError(
      'config.invalid',
      `--kube-plugin ${file}: that is a file, not a credential plug-in.`,
      `If it is the run file, name it before the options: \`train ${file} --kube-plugin …\`.`,
    );
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
 * A wrong address is refused; `inherited` `as it is` leaves one of the environment to the first alert, which says so: the
 * runtime of a window starts all the same.
 */
export function alertTargets(
  o: Options,
  env: NodeJS.ProcessEnv = process.env,
  inherited: 'checked' | 'as it is' = 'checked',
): AlertTargets {
  const given = textOption(o, 'alertWebhook'),
    command = textOption(o, 'alertCommand') ?? env[alertVariables.command] ?? '',
    webhook = given ?? env[alertVariables.webhook] ?? '',
    desktop = o['alertDesktop'] === true || env[alertVariables.desktop] === '1';
  for (const name of Object.values(alertVariables)) delete env[name];
  if (
    (given !== undefined || webhook !== '') &&
    !isWebAddress(webhook) &&
    (given !== undefined || inherited === 'checked')
  )
    throw new StudioError(
      'config.invalid',
      'The address of the webhook for alerts is not a URL.',
      `Give ${given === undefined ? alertVariables.webhook : '--alert-webhook'} an address that begins with http:// or https://.`,
    );
  return { command, webhook, desktop };
}
