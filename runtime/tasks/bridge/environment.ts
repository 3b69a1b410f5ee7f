import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { StudioError, messageOf } from '../../domain/index.js';
import { orUndefined } from '../../concurrency/failures.js';
import { cacheFolder } from '../../files/cacheFolder.js';
import { readForeign } from '../../files/foreignFile.js';
import {
  checkSpace,
  findPython,
  installLock,
  interpreterPath,
  pipInstall,
  runStep,
  type EnvironmentOwner,
} from '../../files/pythonEnvironment.js';
import { shippedFolder } from '../../files/shippedFolder.js';

/** The wheel with OSWorld's evaluators; its own requirements are not installed (gigabytes that judging does not use). */
export const EVALUATORS = { name: 'desktop-env', version: '1.0.2' };
/**
 * A checkout of OSWorld whose evaluators judge in place of the wheel's, and a Python that has what they import. A
 * machine's decision and never a run file's: its code runs on this machine.
 */
export const CHECKOUT_VARIABLE = 'DART_STUDIO_OSWORLD_CHECKOUT',
  PYTHON_VARIABLE = 'DART_STUDIO_OSWORLD_PYTHON';

const OWNER: EnvironmentOwner = {
  kind: 'task.unsupported',
  who: "OSWorld's evaluators",
  whose: "OSWorld's evaluators'",
  versions: ['3.12', '3.11', '3.13'],
  bytes: 1.5e9,
};
const FULL: EnvironmentOwner = { ...OWNER, bytes: 3e9 };

/** An interpreter with evaluators: where they are, and what verdicts call them. */
export interface EvaluatorPlace {
  readonly python: string;
  /** A checkout of OSWorld; absent: the installed wheel. */
  readonly checkout?: string;
  readonly name: string;
  /** Version of the wheel, or the checkout's commit. */
  readonly version: string;
}

/** The folder of worker.py and the requirements. */
export const bridgeDir = (): string =>
  shippedFolder(
    { from: import.meta.url, name: 'evaluators', holds: 'worker.py', inSources: '.' },
    'task.unsupported',
    'The files of the evaluator bridge',
  );

/** Parent of all environments: `${DART_STUDIO_CACHE || XDG_CACHE_HOME || ~/.cache}/dart-studio/evaluators`. */
export const evaluatorCache = (env: NodeJS.ProcessEnv = process.env): string => cacheFolder('evaluators', env);

export interface InstallOptions {
  /** Also what judges images, audio and PDF files. */
  readonly full?: boolean;
  readonly cache?: string;
  readonly pythons?: readonly string[];
  readonly onLine?: (line: string) => void;
  readonly signal?: AbortSignal;
}
export interface Installed {
  readonly place: EvaluatorPlace;
  readonly folder: string;
  /** False where everything was there already. */
  readonly installed: boolean;
}

/**
 * The environment of the pinned evaluators, made where it does not exist (half a minute and 0.3 GB; `full` 1.2 GB). An
 * installation that was cut off is begun anew. Rejects with `task.unsupported`: no usable Python, no space, no network.
 */
export async function installEvaluators(o: InstallOptions = {}): Promise<Installed> {
  const cache = o.cache ?? evaluatorCache(),
    folder = join(cache, await hash()),
    python = join(folder, ...interpreterPath()),
    ready = join(folder, 'ready'),
    fullReady = join(folder, 'ready-full'),
    done = (): boolean => existsSync(ready) && (!o.full || existsSync(fullReady));
  const result = (installed: boolean): Installed => ({ place: { python, ...EVALUATORS }, folder, installed });
  if (done()) return result(false);
  const unlock = await installLock(OWNER, `${folder}.lock`, o);
  try {
    if (done()) return result(false);
    const requirements = (name: string): string => join(bridgeDir(), name);
    if (!existsSync(ready)) {
      const { command } = await findPython(OWNER, o.pythons);
      await checkSpace(OWNER, cache);
      await rm(folder, { recursive: true, force: true });
      await runStep(OWNER, command, ['-m', 'venv', folder], o);
      await pipInstall(OWNER, python, ['-r', requirements('requirements.txt')], o);
      await pipInstall(OWNER, python, ['--no-deps', `${EVALUATORS.name}==${EVALUATORS.version}`], o);
      await writeFile(ready, '');
    }
    if (o.full && !existsSync(fullReady)) {
      await checkSpace(FULL, cache);
      await pipInstall(FULL, python, ['-r', requirements('requirements-full.txt')], o);
      await writeFile(fullReady, '');
    }
    return result(true);
  } finally {
    await unlock();
  }
}

/** Whether what judges images, audio and PDF files is installed, too. */
export const fullyInstalled = (place: EvaluatorPlace): boolean =>
  existsSync(join(dirname(dirname(place.python)), 'ready-full'));

const textOf = async (file: string): Promise<string> => (await readForeign(file, 4 << 20)).toString('utf8');

/** Another environment for other pins, so that a verdict's version says what judged. */
async function hash(): Promise<string> {
  const texts = await Promise.all(
    ['requirements.txt', 'requirements-full.txt'].map((f) => textOf(join(bridgeDir(), f))),
  );
  return createHash('sha256')
    .update(JSON.stringify([texts, EVALUATORS, process.platform, process.arch]))
    .digest('hex')
    .slice(0, 16);
}

/**
 * The evaluators of this machine: the checkout that its setting names, else the installed wheel, else undefined.
 * Rejects with `config.invalid` where the checkout is none.
 */
export async function findEvaluators(
  env: NodeJS.ProcessEnv = process.env,
  cache = evaluatorCache(env),
): Promise<EvaluatorPlace | undefined> {
  const folder = join(cache, await hash()),
    installed = existsSync(join(folder, 'ready')) ? join(folder, ...interpreterPath()) : undefined,
    checkout = env[CHECKOUT_VARIABLE]?.trim();
  if (!checkout) return installed === undefined ? undefined : { python: installed, ...EVALUATORS };
  const dir = resolve(checkout);
  if (!existsSync(join(dir, 'desktop_env', 'evaluators', 'metrics')))
    throw new StudioError(
      'config.invalid',
      `osworld.checkout: ${dir} is no checkout of OSWorld: it has no desktop_env/evaluators.`,
      'Correct the setting dartStudio.osworld.checkout, or leave it empty to use the evaluators of `dart-studio osworld install`.',
    );
  const own = [env[PYTHON_VARIABLE]?.trim(), join(dir, '.venv', ...interpreterPath())].find((p) => p && existsSync(p)),
    python = own ?? installed;
  if (python === undefined)
    throw new StudioError(
      'config.invalid',
      `osworld.checkout: no Python has what the evaluators in ${dir} import.`,
      `Run \`dart-studio osworld install --full\`, or name a Python that has them in ${PYTHON_VARIABLE}.`,
    );
  return { python, checkout: dir, name: 'OSWorld', version: (await commitOf(dir)) ?? 'a checkout without git' };
}

/** The commit that a checkout is at, read from its files: no program of this machine is run for it. */
async function commitOf(dir: string): Promise<string | undefined> {
  const text = (file: string): Promise<string | undefined> =>
    orUndefined(textOf(join(dir, '.git', file)), 'the checkout says less than it could');
  const head = (await text('HEAD'))?.trim(),
    ref = head?.startsWith('ref: ') ? head.slice(5) : undefined;
  if (ref === undefined) return head?.slice(0, 12);
  const loose = (await text(ref))?.trim(),
    packed = (await text('packed-refs'))?.split('\n').find((l) => l.endsWith(` ${ref}`));
  return (loose ?? packed)?.slice(0, 12);
}

/** Why evaluators do not work, for messages. */
export const evaluatorFault = (what: string, cause?: unknown): StudioError =>
  new StudioError(
    'task.verify',
    `OSWorld's evaluators ${what}${cause === undefined ? '' : `: ${messageOf(cause)}`}.`,
    'Install them again: `dart-studio osworld install`. Of a checkout, see that its Python has what it imports.',
  );
