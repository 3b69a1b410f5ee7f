import { StudioError } from '../domain/index.js';

/** Variables of this name are there to be sent, and so are those that this one lists, separated by commas. */
const OWN = /^DART_STUDIO_[A-Z0-9_]*KEY$/;
const LIST = 'DART_STUDIO_API_KEYS';

/**
 * The key in the environment variable that a run file names in `option`. A run file may come from anywhere and names the
 * server too, so only variables that the machine's owner has set apart for this can be named. Throws `config.invalid`.
 */
export function apiKeyOf(
  option: string,
  name: string | undefined,
  env: Readonly<Record<string, string | undefined>> = process.env,
): string | undefined {
  if (name === undefined) return undefined;
  const listed = (env[LIST] ?? '').split(',').map((n) => n.trim());
  if (!OWN.test(name) && !listed.includes(name))
    throw new StudioError(
      'config.invalid',
      `${option}: the environment variable ${name} is not one of those that run files may name.`,
      `Name it DART_STUDIO_..._KEY, or allow it: ${LIST}=${name}.`,
    );
  const key = env[name];
  if (!key)
    throw new StudioError(
      'config.invalid',
      `The environment variable ${name} (${option}) is not set.`,
      'Set it where the runtime is started, or remove the key from the run file.',
    );
  return key;
}
