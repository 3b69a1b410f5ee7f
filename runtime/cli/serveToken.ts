import { StudioError, messageOf } from '../domain/index.js';
import { readForeignText } from '../files/foreignFile.js';
import { textOption, type Options } from './options.js';

export const TOKEN_VARIABLE = 'DART_STUDIO_SERVE_TOKEN';
/** Bytes of a file with a token. */
const MOST_BYTES = 4096;

/**
 * The token that clients of `desktop serve` send: of the command line, of a file, else of this process's environment. It
 * is removed from the environment, which programs that are started inherit.
 */
export async function serveToken(o: Options, env: NodeJS.ProcessEnv = process.env): Promise<string | undefined> {
  const given = textOption(o, 'token'),
    file = textOption(o, 'tokenFile'),
    inherited = env[TOKEN_VARIABLE];
  Reflect.deleteProperty(env, TOKEN_VARIABLE);
  if (given !== undefined && file !== undefined)
    throw unusable('--token and --token-file are both given', 'Give one of them.');
  if (file !== undefined) return usable(await textOf(file), `--token-file ${file}`);
  if (given !== undefined) return usable(given, '--token');
  return inherited === undefined ? undefined : usable(inherited, TOKEN_VARIABLE);
}

const textOf = (file: string): Promise<string> =>
  readForeignText(file, MOST_BYTES).catch((e: unknown) => {
    throw unusable(`--token-file ${file} cannot be read: ${messageOf(e)}`, 'Give a file that holds the token alone.');
  });

/** A header cannot carry anything else. */
function usable(text: string, from: string): string {
  const token = text.trim();
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw unusable(
    `${from} holds no token`,
    'A token is one word of letters, digits and signs, e.g. of openssl rand -hex 32.',
  );
}
const unusable = (what: string, remedy: string): StudioError =>
  new StudioError('config.invalid', `desktop serve: ${what}`, remedy);
