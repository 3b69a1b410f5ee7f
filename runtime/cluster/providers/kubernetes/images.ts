import { createWriteStream } from 'node:fs';
import { readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type Docker from 'dockerode';
import { messageOf, StudioError } from '../../../domain/index.js';
import { buildCancelled } from '../../imageBuild/process.js';
import type { OnProgress } from '../../imageBuild/recipe.js';
import { engineError } from '../dockerImage.js';
import { engineLines } from '../engineLines.js';

/** Repository and tag of an image reference; without a tag that of the built image. Throws `config.invalid`. */
export function parseReference(ref: string, builtTag: string): { readonly repo: string; readonly tag: string } {
  const at = ref.lastIndexOf(':'),
    tagged = at > ref.lastIndexOf('/');
  const repo = tagged ? ref.slice(0, at) : ref,
    tag = tagged ? ref.slice(at + 1) : builtTag;
  if (!/^[\w][\w./:-]*$/.test(repo) || !/^[\w][\w.-]{0,127}$/.test(tag) || !repo.includes('/'))
    throw new StudioError(
      'config.invalid',
      `--push ${ref}: not an image reference of a registry.`,
      'Write it as registry.example.com/team/desk or with a tag, …/desk:1.',
    );
  return { repo, tag };
}

/**
 * Pushes an image of the engine to a registry under `ref`; resolves with the reference that run files name. The
 * registry's credentials are those of `docker login`.
 */
export async function pushImage(
  docker: Docker,
  image: string,
  ref: string,
  onProgress: OnProgress,
  signal: AbortSignal,
): Promise<string> {
  const { repo, tag } = parseReference(ref, image.slice(image.lastIndexOf(':') + 1)),
    target = `${repo}:${tag}`;
  const refused = (said: string): StudioError =>
    new StudioError(
      'desktop.image',
      `The registry did not take ${target}: ${said}`,
      `Log in to it with \`docker login ${registryOf(repo)}\`. With a credential helper, push by hand: docker tag ${image} ${target} && docker push ${target}`,
    );
  let stream: NodeJS.ReadableStream;
  try {
    await docker.getImage(image).tag({ repo, tag });
    const authconfig = await credentialsOf(registryOf(repo));
    stream = await docker.getImage(target).push({ tag, abortSignal: signal, ...(authconfig ? { authconfig } : {}) });
  } catch (e) {
    throw engineError(e);
  }
  for await (const m of engineLines(stream)) {
    if (m.error) throw refused(m.error);
    if (m.status) onProgress({ phase: 'push', message: [m.id, m.status, m.progress].filter(Boolean).join(' ') });
  }
  return target;
}

/** Calls of the system that fail by the file; any other is a fault of the engine or the way to it. */
const WRITING: ReadonlySet<string> = new Set(['open', 'write', 'close', 'rename']);

/** An image of the engine as a file, for nodes that no registry reaches (`ctr -n k8s.io images import FILE`). */
export async function exportImage(docker: Docker, image: string, file: string, signal: AbortSignal): Promise<void> {
  const part = `${file}.part`;
  try {
    const stream = (await docker.getImage(image).get()) as Readable;
    await pipeline(stream, createWriteStream(part), { signal });
    await rename(part, file);
  } catch (e) {
    await rm(part, { force: true });
    if (signal.aborted) throw buildCancelled('Writing the image');
    if (!WRITING.has((e as NodeJS.ErrnoException).syscall ?? '')) throw engineError(e);
    throw new StudioError('desktop.image', `${file} cannot be written: ${messageOf(e)}`, 'Choose another file.', {
      cause: e,
    });
  }
}

/** The registry of a repository, as `docker login` names it. */
function registryOf(repo: string): string {
  const first = repo.split('/')[0]!;
  return /[.:]|^localhost$/.test(first) ? first : 'https://index.docker.io/v1/';
}

/**
 * The credentials that `docker login` wrote for a registry; undefined without, or where a credential helper keeps them.
 */
async function credentialsOf(registry: string): Promise<Docker.AuthConfig | undefined> {
  const file = join(process.env['DOCKER_CONFIG'] ?? join(homedir(), '.docker'), 'config.json');
  let auth: unknown;
  try {
    const config = JSON.parse(await readFile(file, 'utf8')) as { auths?: Record<string, { auth?: unknown }> };
    auth = config.auths?.[registry]?.auth;
  } catch {
    return undefined; // nobody has logged in
  }
  if (typeof auth !== 'string') return undefined;
  const text = Buffer.from(auth, 'base64').toString('utf8'),
    at = text.indexOf(':');
  return { username: text.slice(0, at), password: text.slice(at + 1), serveraddress: registry };
}
