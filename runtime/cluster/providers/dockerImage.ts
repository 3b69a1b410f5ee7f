import { createReadStream } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawn } from 'node:child_process';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type Docker from 'dockerode';
import { DEFAULT_IMAGE, StudioError, messageOf } from '../../domain/index.js';
import { withDeadline } from '../../concurrency/deadline.js';
import { parseHost } from './dockerHosts.js';
import { engineClient } from './engineClient.js';
import { engineLines, type EngineLine } from './engineLines.js';
import { AptProgress, caBundle, debLine, forContainer, machineAptConf, machineSources } from '../imageBuild/apt.js';
import { aptRemedy, buildCancelled } from '../imageBuild/process.js';
import { readRecipe, type OnProgress, type Recipe } from '../imageBuild/recipe.js';
import { bootstrapBase, noTool, rootfsInfo, type RootfsInfo, type RootfsSource } from '../imageBuild/rootfs.js';
import { tar, type TarFile } from '../../files/tar.js';
import { notBuilt } from '../imageExtra.js';
import { extraContext } from './dockerExtra.js';

export const BASE_IMAGE = 'debian:bookworm-slim';
export const LABEL = 'app=dart-studio';

/**
 * An engine by its address (as in DOCKER_HOST), or the environment's; sends nothing yet. For callers that may not
 * import dockerode.
 */
export const connectEngine = (host?: string): Docker => engineClient(host === undefined ? undefined : parseHost(host));

export const imageTag = (recipe: Recipe): string => `dart-studio/desktop:${recipe.image}-${recipe.imageHash}`;

/** The builds of the current recipe, in the cache and (when an engine is given) in that engine. */
export interface ImageStatus {
  readonly tag: string;
  readonly rootfs?: RootfsInfo;
  readonly image?: { readonly id: string; readonly bytes: number; readonly created: string };
}

export async function imageStatus(docker?: Docker, name: string = DEFAULT_IMAGE): Promise<ImageStatus> {
  const recipe = await readRecipe(name);
  const tag = imageTag(recipe);
  const rootfs = await rootfsInfo(recipe);
  const image = docker ? await inspect(docker, tag) : undefined;
  return {
    tag,
    rootfs,
    image: image && { id: image.Id, bytes: image.Size, created: image.Created },
  };
}

/** The engine's image of this name; undefined when it has none. */
export async function inspect(docker: Docker, tag: string): Promise<Docker.ImageInspectInfo | undefined> {
  try {
    return await docker.getImage(tag).inspect();
  } catch (e) {
    if (statusOf(e) === 404) return undefined;
    throw engineError(e);
  }
}

/**
 * The tag of a desktop image in this engine (default: `desk`), built when it is missing (about 40 s; 20 s more where the base has to
 * be made, too). One with a layer of the user's own is only built where `asked` says that a person asks for it.
 */
export async function ensureImage(
  docker: Docker,
  onProgress: OnProgress = () => {},
  signal?: AbortSignal,
  o: { force?: boolean; image?: string; asked?: boolean } = {},
): Promise<string> {
  const recipe = await readRecipe(o.image);
  const tag = imageTag(recipe);
  if (!o.force && (await inspect(docker, tag))) return tag;
  if (recipe.extra && !o.asked) throw notBuilt({ name: recipe.image, extra: recipe.extra.dir });
  const context = recipe.extra
    ? extraContext(
        recipe.extra,
        await ensureImage(docker, onProgress, signal, { image: recipe.image }),
        await networkFiles(),
      )
    : await ownContext(docker, recipe, onProgress, signal);
  onProgress({ phase: 'packages', message: `Building ${tag}`, fraction: 0 });
  const apt = new AptProgress();
  try {
    const stream = await docker.buildImage(
      context as NodeJS.ReadableStream,
      {
        t: tag,
        rm: true,
        forcerm: true,
        ...(o.force ? { nocache: true } : {}),
        labels: { app: 'dart-studio', 'dart-studio.image': recipe.imageHash, 'dart-studio.rootfs': recipe.rootfsHash },
        buildargs: proxyArgs(process.env),
        abortSignal: signal,
      } as Docker.ImageBuildOptions,
    );
    await follow(stream, signal, (line) => {
      const f = apt.line(line);
      if (f !== undefined)
        onProgress({ phase: 'packages', message: line.slice(0, 120), fraction: Math.round(f * 100) / 100 });
      else if (/^Step \d+\/\d+/.test(line))
        onProgress({ phase: /overlay/.test(line) ? 'configure' : 'packages', message: line.slice(0, 120) });
    });
  } catch (e) {
    throw buildError(e, signal);
  }
  if (!(await inspect(docker, tag)))
    throw new StudioError(
      'desktop.image',
      `The engine finished the build but has no image ${tag}.`,
      `Run \`dart-studio desktop build --image ${recipe.image} --force\`.`,
    );
  onProgress({ phase: 'done', message: `${tag} is ready.`, fraction: 1 });
  return tag;
}

async function ownContext(
  docker: Docker,
  recipe: Recipe,
  onProgress: OnProgress,
  signal?: AbortSignal,
): Promise<Readable> {
  await ensureBase(docker, recipe, onProgress, signal);
  return Readable.from([tar(await buildContext(recipe))]);
}

/** The recipe with this machine's mirror settings; deterministic, so that the engine's layer cache works. */
export const buildContext = async (recipe: Recipe): Promise<TarFile[]> => [...recipe.files, ...(await networkFiles())];

/** This machine's mirrors, proxy and certificates, for apt in a build. */
async function networkFiles(): Promise<TarFile[]> {
  const net = forContainer(await machineSources(), await machineAptConf());
  const files: TarFile[] = [
    { path: 'apt.list', data: Buffer.from(net.sources.map((s) => debLine(s, false)).join('\n') + '\n') },
  ];
  const conf = [...net.conf];
  if (net.sources.some((s) => s.uri.startsWith('https:'))) {
    // A slim base has no certificates; this machine's also include the CA of a proxy that intercepts TLS.
    try {
      files.push({ path: 'apt-ca.crt', data: await readFile(caBundle()) });
      conf.push('Acquire::https::CaInfo "/tmp/dart-build/apt-ca.crt";');
    } catch {
      /* no bundle here: apt says what it lacks */
    }
  }
  if (conf.length > 0) files.push({ path: 'apt.conf', data: Buffer.from(conf.join('\n') + '\n') });
  return files;
}

/** Proxy settings as build arguments: the engine knows these names and keeps them out of the image's history. */
export function proxyArgs(env: NodeJS.ProcessEnv): Record<string, string> {
  const out: Record<string, string> = {};
  for (const k of ['http_proxy', 'https_proxy', 'no_proxy']) {
    const v = env[k] ?? env[k.toUpperCase()];
    if (v && !/127\.0\.0\.1|localhost|\[::1\]/.test(k === 'no_proxy' ? '' : v)) out[k] = v;
  }
  return out;
}

const PULL_MS = 120_000;
/** Pulls an image. Rejects when no registry gives it. */
export async function pullImage(
  docker: Docker,
  image: string,
  onProgress: OnProgress,
  signal?: AbortSignal,
): Promise<void> {
  onProgress({ phase: 'base', message: `Pulling ${image}` });
  await withDeadline(PULL_MS, [signal], async (both) =>
    follow(await docker.pull(image, { abortSignal: both }), both, (l) =>
      onProgress({ phase: 'base', message: l.slice(0, 120) }),
    ),
  );
}

/** The base of our images; where no registry answers, made from Debian's packages and imported under the same name. */
export async function ensureBase(
  docker: Docker,
  recipe: Recipe,
  onProgress: OnProgress,
  signal?: AbortSignal,
): Promise<void> {
  if (await inspect(docker, BASE_IMAGE)) return;
  try {
    await pullImage(docker, BASE_IMAGE, onProgress, signal);
    return;
  } catch (e) {
    if (signal?.aborted) throw buildCancelled('Pulling the base image');
    onProgress({
      phase: 'base',
      message: `No registry can be reached (${messageOf(e).slice(0, 100)}); making ${BASE_IMAGE} from Debian's packages.`,
    });
  }
  const dir = await mkdtemp(join(tmpdir(), 'dart-studio-base-'));
  try {
    const file = join(dir, 'base.tar');
    await bootstrapBase(recipe, file, { onProgress, signal });
    onProgress({ phase: 'base', message: `Importing ${BASE_IMAGE}` });
    const [repo, tagName] = BASE_IMAGE.split(':') as [string, string];
    const stream = (await docker.importImage(createReadStream(file), {
      repo,
      tag: tagName,
      changes: 'CMD ["bash"]',
      abortSignal: signal,
    })) as NodeJS.ReadableStream;
    await follow(stream, signal, () => {});
  } catch (e) {
    throw buildError(e, signal);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** Characters that are kept of a line without an end, such as a bar that grows. */
const MOST_PARTIAL = 4096;
/** Reads an engine's JSON progress stream to its end, line by line of text; rejects with the engine's error entry. */
export async function follow(
  stream: NodeJS.ReadableStream,
  signal: AbortSignal | undefined,
  onLine: (l: string) => void,
): Promise<void> {
  const abort = (): void => {
    (stream as Readable).destroy(buildCancelled('The build'));
  };
  signal?.addEventListener('abort', abort, { once: true });
  const tail: string[] = [];
  let partial = '';
  try {
    for await (const m of engineLines(stream)) take(m);
  } finally {
    signal?.removeEventListener('abort', abort);
  }
  function take(m: EngineLine): void {
    if (m.error)
      throw new StudioError(
        'desktop.image',
        `The engine's build failed: ${m.error.slice(0, MOST_WORDS)}${tail.length > 0 ? `; ${tail.slice(-3).join(' / ')}` : ''}`,
        aptRemedy(tail.join('\n') + m.error),
        { details: { output: tail.join('\n') } },
      );
    // Output of RUN comes in pieces that need not end with a line.
    partial += m.stream ?? (m.status ? `${m.status}${m.progress ? ` ${m.progress}` : ''}\n` : '');
    const lines = partial.split(/\r?\n/);
    partial = lines.pop()!.slice(0, MOST_PARTIAL);
    for (const l of lines) {
      if (l.trim() === '') continue;
      tail.push(l);
      if (tail.length > 40) tail.shift();
      onLine(l);
    }
  }
}

/** A root file system out of the Docker image, for a machine that has an engine but no mmdebstrap. */
export async function exportRootfs(
  docker: Docker,
  dir: string,
  o: { image?: string; onProgress: OnProgress; signal?: AbortSignal },
): Promise<string> {
  // Only `desktop build` exports, and it counts as asked for.
  const image = await ensureImage(docker, o.onProgress, o.signal, { image: o.image, asked: true });
  o.onProgress({ phase: 'finish', message: `Exporting ${image}` });
  const container = await docker.createContainer({
    Image: image,
    Labels: { app: 'dart-studio', 'dart-studio.role': 'export' },
    NetworkDisabled: true,
  });
  try {
    await mkdir(dir);
    const root = process.getuid?.() === 0;
    const child = spawn(
      'tar',
      [
        '-x',
        '-C',
        dir,
        '--exclude=dev/*',
        '--exclude=.dockerenv',
        ...(root ? ['--numeric-owner', '--same-owner'] : ['--no-same-owner']),
      ],
      { stdio: ['pipe', 'ignore', 'pipe'] },
    );
    let said = '';
    child.stderr.on('data', (d: Buffer) => {
      said = (said + d.toString()).slice(-2000);
    });
    const ended = new Promise<number | null>((res, rej) => {
      child.once('error', rej);
      child.once('close', res);
    });
    await Promise.all([
      pipeline(
        (await container.export({ abortSignal: o.signal })) as Readable,
        child.stdin,
        o.signal ? { signal: o.signal } : {},
      ),
      ended,
    ]);
    if ((await ended) !== 0)
      throw new StudioError(
        'desktop.image',
        `tar could not unpack the image: ${said.trim()}`,
        'Check the free space of the cache folder.',
      );
    return `docker export of ${image}`;
  } catch (e) {
    throw buildError(e, o.signal);
  } finally {
    await container.remove({ force: true }).catch(() => {});
  }
}

/** A source for ensureRootfs on a machine without mmdebstrap: the environment's engine, if one answers. */
export const rootfsFromEngine: RootfsSource = async (dir, o) => {
  const docker = connectEngine();
  try {
    await withDeadline(4000, [], (abortSignal) =>
      (docker.ping as (o: object) => Promise<unknown>).call(docker, { abortSignal }),
    );
  } catch {
    throw noTool();
  }
  return exportRootfs(docker, dir, o);
};

/** Characters of what an engine says of a fault. */
const MOST_WORDS = 2000;

export const statusOf = (e: unknown): number | undefined => (e as { statusCode?: number } | null)?.statusCode;

export function buildError(e: unknown, signal?: AbortSignal): StudioError {
  if (signal?.aborted) return buildCancelled('Building the image');
  if (e instanceof StudioError) return e;
  return engineError(e);
}

/**
 * An engine's failure as a StudioError. Its own message is in `json.message`; `reason` is often misleading
 * (runtime/cluster/README.md#docker-engine).
 */
export function engineError(e: unknown, host?: string): StudioError {
  const err = e as { code?: string; statusCode?: number; message?: string; json?: { message?: string } };
  const where = host ? ` at ${host}` : '';
  if (err.code === 'ENOENT' || err.code === 'ECONNREFUSED')
    return new StudioError(
      'desktop.unavailable',
      `No Docker engine answers${where}.`,
      'Start Docker (`systemctl start docker`), set DOCKER_HOST, or choose `provider: local`.',
      { cause: e },
    );
  if (err.code === 'EACCES')
    return new StudioError(
      'desktop.unavailable',
      `The Docker engine's socket${where} may not be used by this user.`,
      'Add yourself to the group docker (`sudo usermod -aG docker $USER`, then log in again), or choose `provider: local`.',
      { cause: e },
    );
  if (err.statusCode === undefined)
    return new StudioError(
      'desktop.unavailable',
      `The Docker engine${where} cannot be reached: ${(err.message ?? String(e)).slice(0, MOST_WORDS)}`,
      'Check DOCKER_HOST and the network, or choose `provider: local`.',
      { cause: e },
    );
  const said = (err.json?.message ?? err.message ?? String(e)).slice(0, MOST_WORDS);
  return new StudioError(
    'desktop.start',
    `The Docker engine${where} answered ${err.statusCode}: ${said}`,
    /no space left/i.test(said)
      ? "Free disk space on the engine's machine (`docker system prune`)."
      : "Check the engine's log (`journalctl -u docker`).",
    { details: { status: err.statusCode } },
  );
}
