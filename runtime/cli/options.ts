import { StudioError } from '../domain/index.js';

/** Options of a command as commander gives them. */
export type Options = Readonly<Record<string, string | boolean | undefined>>;

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
