import { access, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { existsSync, readFileSync } from 'node:fs';
import { platform } from 'node:os';
import { join } from 'node:path';
import { StudioError, messageOf } from '../../domain/index.js';
import { shellQuoted } from '../../foreign/shellQuoted.js';
import { AptProgress, caBundle, DEBIAN_KEYRING, debLine, machineAptConf, machineSources } from './apt.js';
import { cacheFolder } from '../../files/cacheFolder.js';
import { fileLock, which } from '../../files/fileLock.js';
import { freeBytes } from '../../files/freeSpace.js';
import { aptRemedy, buildCancelled, runTool } from './process.js';
import { stageExtra } from './extra.js';
import { readRecipe, type OnProgress, type Recipe } from './recipe.js';

export interface RootfsInfo {
  readonly path: string;
  /** The image it was built as; absent in one built by version 0.1. */
  readonly image?: string;
  readonly hash: string;
  readonly builtAt: string;
  readonly packages: readonly string[];
  readonly how: string;
}
export interface EnsureRootfsOptions {
  readonly onProgress?: OnProgress;
  readonly signal?: AbortSignal;
  /** Build even if it exists. */
  readonly force?: boolean;
  /** Name of the desktop image; default `desk`. */
  readonly image?: string;
}

/** `${DART_STUDIO_CACHE || XDG_CACHE_HOME || ~/.cache}/dart-studio/desktop`. */
export function desktopCache(env: NodeJS.ProcessEnv = process.env): string {
  return cacheFolder('desktop', env);
}

/**
 * The finished root file system of the current recipe (default: the image `desk`), or undefined when it is not built.
 */
export async function rootfsPath(recipe?: Recipe): Promise<string | undefined> {
  return (await rootfsInfo(recipe))?.path;
}

export async function rootfsInfo(recipe?: Recipe): Promise<RootfsInfo | undefined> {
  const hash = (recipe ?? (await readRecipe())).rootfsHash;
  const folder = join(desktopCache(), hash);
  try {
    const meta = JSON.parse(await readFile(join(folder, 'meta.json'), 'utf8')) as Omit<RootfsInfo, 'path'>;
    return existsSync(join(folder, 'rootfs', 'usr')) ? { ...meta, path: join(folder, 'rootfs') } : undefined;
  } catch {
    return undefined;
  }
}

/** A way to get a root file system other than from packages: an export of the Docker image. */
export type RootfsSource = (
  dir: string,
  o: { image: string; onProgress: OnProgress; signal?: AbortSignal },
) => Promise<string>;

/**
 * The root file system for the local provider, built when it is missing (about 50 s and 400 MB). It is made under
 * another name and renamed when complete, so an existing folder is complete; several processes asking at once build it
 * once. `fallback` is used when mmdebstrap is not installed.
 */
export async function ensureRootfs(o: EnsureRootfsOptions = {}, fallback?: RootfsSource): Promise<string> {
  const onProgress = o.onProgress ?? ((): void => {});
  const recipe = await readRecipe(o.image);
  const there = o.force ? undefined : await rootfsPath(recipe);
  if (there) return there;
  const cache = desktopCache();
  try {
    await mkdir(cache, { recursive: true, mode: 0o755 });
  } catch (e) {
    throw new StudioError(
      'desktop.image',
      `The cache folder ${cache} cannot be created: ${messageOf(e)}`,
      'Set DART_STUDIO_CACHE to a folder that you can write to.',
      { cause: e },
    );
  }
  const unlock = await fileLock(join(cache, `.${recipe.rootfsHash}.lock`), {
    kind: 'desktop.image',
    signal: o.signal,
    onWait: () =>
      onProgress({ phase: 'wait', message: 'Another process is building the same root file system; waiting for it.' }),
  });
  try {
    const made = o.force ? undefined : await rootfsPath(recipe); // by the previous holder of the lock
    if (made) return made;
    await checkSpace(cache);
    return await build(recipe, cache, onProgress, o.signal, fallback);
  } finally {
    await unlock();
  }
}

async function checkSpace(cache: string): Promise<void> {
  const free = await freeBytes(cache);
  if (free !== undefined && free < 1.5e9)
    throw new StudioError(
      'desktop.image',
      `Only ${Math.round(free / 1e6)} MB are free in ${cache}; a desktop's root file system needs 1500 MB while it is built (400 MB after).`,
      'Free some space, or set DART_STUDIO_CACHE to a folder on a larger disk.',
    );
}

async function build(
  recipe: Recipe,
  cache: string,
  onProgress: OnProgress,
  signal: AbortSignal | undefined,
  fallback: RootfsSource | undefined,
): Promise<string> {
  const tmpPrefix = `.tmp-${recipe.rootfsHash}-`;
  // Under the lock: anything with our prefix was left by a build that was killed.
  for (const n of await readdir(cache)) if (n.startsWith(tmpPrefix)) await removeTree(join(cache, n));
  const tmp = join(cache, `${tmpPrefix}${process.pid}`);
  const dir = join(tmp, 'rootfs');
  await mkdir(tmp, { mode: 0o755 });
  try {
    let how: string;
    if (which('mmdebstrap')) how = await bootstrapRootfs(recipe, dir, { onProgress, signal });
    else if (fallback) how = await fallback(dir, { image: recipe.reference, onProgress, signal });
    else throw noTool();
    await checkWhole(recipe.image, dir);
    onProgress({ phase: 'finish', message: 'Moving the root file system into place.', fraction: 1 });
    await writeFile(
      join(tmp, 'meta.json'),
      JSON.stringify(
        {
          image: recipe.reference,
          hash: recipe.rootfsHash,
          builtAt: new Date().toISOString(),
          packages: recipe.packages,
          how,
        },
        null,
        2,
      ) + '\n',
    );
    if (signal?.aborted) throw buildCancelled('Building the root file system');
    const final = join(cache, recipe.rootfsHash);
    if (existsSync(final)) {
      await rename(final, join(cache, `${tmpPrefix}old-${process.pid}`));
    }
    await rename(tmp, final);
    await removeTree(join(cache, `${tmpPrefix}old-${process.pid}`));
    onProgress({ phase: 'done', message: `The root file system is at ${join(final, 'rootfs')}.`, fraction: 1 });
    return join(final, 'rootfs');
  } finally {
    await removeTree(tmp);
  }
}

export const noTool = (): StudioError =>
  new StudioError(
    'desktop.image',
    "mmdebstrap is not installed, so the desktop's root file system cannot be built.",
    platform() === 'linux'
      ? 'Run `apt-get install mmdebstrap` (as root), or start Docker and choose `provider: docker`.'
      : 'The local provider needs Linux: install Docker and choose `provider: docker`.',
  );

/** Files that every desktop needs to start; a missing one means that the build is incomplete. */
async function checkWhole(image: string, dir: string): Promise<void> {
  for (const f of ['usr/bin/Xvfb', 'usr/bin/jwm', 'usr/bin/python3', 'etc/jwm/system.jwmrc', 'etc/skel/Documents']) {
    try {
      await access(join(dir, f));
    } catch {
      throw new StudioError(
        'desktop.image',
        `The root file system was built but lacks ${f}.`,
        `Check images/${image}/packages.txt, then run \`dart-studio desktop build --image ${image} --force\`.`,
      );
    }
  }
}

/**
 * As root, mmdebstrap writes straight into a folder. Without root it makes a tar in a user namespace, which is then
 * unpacked with everything owned by us: the sandbox maps us to its users anyway, and the folder stays removable.
 */
export async function bootstrapRootfs(
  recipe: Recipe,
  dir: string,
  o: { onProgress: OnProgress; signal?: AbortSignal },
): Promise<string> {
  const root = process.getuid?.() === 0;
  const target = root ? dir : `${dir}.tar`;
  const staged = `${dir}.extra`,
    extra = recipe.extra && (await stageExtra(recipe.extra, staged)),
    named = recipe.layers.filter((layer) => layer !== recipe.extra?.dir);
  const part = (path: string): string[] => named.map((layer) => join(layer, path)).filter((p) => existsSync(p));
  const hooks = [
    // Before any set-up: that of the image desk removes what apt needs.
    ...(extra && extra.debs.length > 0 ? debHooks(extra.debs, await certificates()) : []),
    ...part('setup.sh').flatMap(setupHooks),
    ...part('overlay').map((overlay) => `--customize-hook=sync-in ${shellQuoted(overlay)} /`),
    ...(extra?.setup ? setupHooks(extra.setup) : []),
    ...(extra?.overlay ? [`--customize-hook=tar-in ${shellQuoted(extra.overlay)} /`] : []),
  ];
  const args = [
    '--verbose',
    `--mode=${root ? 'root' : 'unshare'}`,
    ...dpkgOptions(recipe),
    `--include=${recipe.packages.join(',')}`,
    // mmdebstrap would empty /etc/machine-id, which the session bus needs.
    '--skip=cleanup/reproducible',
    ...hooks,
  ];
  await mmdebstrap(args, target, {
    ...o,
    phase: 'packages',
    what: `Installing ${recipe.packages.length} packages and what they need`,
  });
  await rm(staged, { recursive: true, force: true });
  if (!root) {
    o.onProgress({ phase: 'configure', message: 'Unpacking the root file system.' });
    await mkdir(dir);
    await runTool(['tar', '-xf', target, '-C', dir, '--no-same-owner', '--exclude=./dev/*'], {
      signal: o.signal,
      remedy: aptRemedy,
    });
    await rm(target);
  }
  return root ? 'mmdebstrap as root' : 'mmdebstrap in a user namespace';
}

const setupHooks = (setup: string): string[] => [
  `--customize-hook=upload ${shellQuoted(setup)} /tmp/setup.sh`,
  '--customize-hook=chroot "$1" sh /tmp/setup.sh',
  '--customize-hook=rm -f "$1/tmp/setup.sh"',
];

/** Installs package files, with what they need. `ca`: certificates for mirrors behind https, which the system has not. */
const debHooks = (debs: readonly string[], ca: string | undefined): string[] => [
  '--customize-hook=mkdir "$1/tmp/dart-debs"',
  `--customize-hook=copy-in ${debs.map(shellQuoted).join(' ')} /tmp/dart-debs`,
  ...(ca === undefined ? [] : [`--customize-hook=upload ${shellQuoted(ca)} /tmp/dart-debs/ca.crt`]),
  `--customize-hook=chroot "$1" sh -c "DEBIAN_FRONTEND=noninteractive apt-get${ca === undefined ? '' : ' -o Acquire::https::CaInfo=/tmp/dart-debs/ca.crt'} install -y --no-install-recommends /tmp/dart-debs/*.deb"`,
  '--customize-hook=rm -r "$1/tmp/dart-debs"',
];
const certificates = async (): Promise<string | undefined> =>
  (await machineSources()).some((s) => s.uri.startsWith('https:'))
    ? [caBundle()].find((f) => existsSync(f))
    : undefined;

/** A minimal Debian as a tar file: the base of the Docker image where no registry can be reached. */
export async function bootstrapBase(
  recipe: Recipe,
  tar: string,
  o: { onProgress: OnProgress; signal?: AbortSignal },
): Promise<void> {
  if (!which('mmdebstrap'))
    throw new StudioError(
      'desktop.image',
      'debian:bookworm-slim cannot be pulled, and mmdebstrap, which could make it from packages, is not installed.',
      'Give the engine access to a registry (`docker pull debian:bookworm-slim` must work), or run `apt-get install mmdebstrap`.',
    );
  const args = ['--verbose', `--mode=${process.getuid?.() === 0 ? 'root' : 'unshare'}`, ...dpkgOptions(recipe)];
  await mmdebstrap(args, tar, { ...o, phase: 'base', what: 'Making the base image from Debian packages' });
}

async function mmdebstrap(
  args: readonly string[],
  target: string,
  o: { onProgress: OnProgress; signal?: AbortSignal; phase: 'base' | 'packages'; what: string },
): Promise<void> {
  const sources = await machineSources();
  const conf = await machineAptConf();
  o.onProgress({ phase: o.phase, message: `${o.what} (from ${sources[0]!.uri})`, fraction: 0 });
  const apt = new AptProgress(o.phase === 'base' ? [1] : [0.3, 0.7]);
  let best = 0;
  await runTool(
    [
      which('mmdebstrap')!,
      '--variant=minbase',
      ...(existsSync(DEBIAN_KEYRING) ? [`--keyring=${DEBIAN_KEYRING}`] : []),
      '--aptopt=Apt::Install-Recommends "false"',
      ...conf.map((l) => `--aptopt=${l.replace(/;$/, '')}`),
      ...args,
      'bookworm',
      target,
      ...sources.map((s) => debLine(s, true)),
    ],
    {
      signal: o.signal,
      remedy: aptRemedy,
      onLine: (l) => {
        const f = apt.line(l);
        if (f !== undefined && f > best + 0.01) {
          best = f;
          o.onProgress({ phase: o.phase, message: l.slice(0, 120), fraction: Math.round(f * 100) / 100 });
        } else if (/^I: /.test(l))
          o.onProgress({
            phase: /customize-hook|special hook/.test(l) ? 'configure' : o.phase,
            message: l.slice(3, 160),
          });
      },
    },
  );
}

/** dpkg's path exclusions, from the last layer that has any. */
const dpkgOptions = (recipe: Recipe): string[] =>
  recipe.layers
    .filter((dir) => dir !== recipe.extra?.dir)
    .map((dir) => join(dir, 'overlay/etc/dpkg/dpkg.cfg.d/50-dart-studio'))
    .filter((file) => existsSync(file))
    .slice(-1)
    .map((file) => `--dpkgopt=${file}`);

/** Deletes a tree of ours, unless a killed build left something mounted in it. */
export async function removeTree(path: string): Promise<void> {
  if (!existsSync(path)) return;
  try {
    if (readFileSync('/proc/self/mountinfo', 'utf8').includes(` ${path}/`)) return;
  } catch {
    /* no /proc: nothing of Linux is mounted there */
  }
  await rm(path, { recursive: true, force: true, maxRetries: 3 });
}
