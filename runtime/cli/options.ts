import { StudioError } from '../domain/index.js';
import { CONTEXT_VARIABLE, PLUGINS_VARIABLE } from '../service/kubernetes.js';

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

/**
 * What the command line allows of clusters, for this process: which context's credentials are used, and which
 * credential plug-ins may run. A run file cannot.
 */
export function allowCluster(o: Options): void {
  const context = o['kubeContext'],
    plugins = o['kubePlugin'] as unknown as readonly string[] | undefined;
  if (typeof context === 'string') process.env[CONTEXT_VARIABLE] = context;
  if (plugins) process.env[PLUGINS_VARIABLE] = plugins.join(',');
}
