import { existsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative, sep } from 'node:path';
import { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { messageOf, StudioError } from '../../../domain/index.js';
import { tar, type TarFile } from '../../../files/tar.js';
import { connectEngine } from '../../imageBuild.js';
import { buildCancelled } from '../../imageBuild/process.js';
import { contentHash, readRecipe, type OnProgress, type RecipeFile } from '../../imageBuild/recipe.js';
import { BASE_IMAGE, buildError, engineError, ensureBase, follow, inspect, pullImage } from '../dockerImage.js';
import { exportImage, parseReference, pushImage } from './images.js';
import { RUNTIME_USER } from './manifests.js';

export interface RuntimeImageOptions {
  /** The bundle that this process runs (dist/runtime.js). */
  readonly bundle: string;
  /** Image with Node.js that it is made from; default: `NODE_IMAGE`. */
  readonly base?: string | undefined;
  /** Reference under which the image is pushed to a registry. */
  readonly push?: string | undefined;
  /** File that the image is written to, too. */
  readonly file?: string | undefined;
  readonly onProgress: OnProgress;
  readonly signal: AbortSignal;
}

export const NODE_IMAGE = 'node:20-bookworm-slim';
const OLDEST_NODE = 20;
const HOME = '/opt/dart-studio';

/**
 * Builds the image of the runtime from what is installed here, unless the engine has it, and brings it where it was
 * asked for; resolves with its reference. It has no Python: OSWorld's evaluators and the single-GPU engine run elsewhere.
 */
export async function buildRuntimeImage(o: RuntimeImageOptions): Promise<string> {
  if (o.push !== undefined) parseReference(o.push, 'built'); // before a minute of building
  const docker = connectEngine(),
    built = await ensureRuntimeImage(docker, o);
  if (o.file !== undefined) await exportImage(docker, built, o.file, o.signal);
  return o.push === undefined ? built : pushImage(docker, built, o.push, o.onProgress, o.signal);
}

async function ensureRuntimeImage(docker: Docker, o: RuntimeImageOptions): Promise<string> {
  const arch = await archOf(docker),
    { image: base, node } = await baseOf(docker, arch, o),
    files = [...(await shippedFiles(dirname(o.bundle), arch)), ...(node ? [node] : [])],
    context = [...files, { path: 'Dockerfile', executable: false, data: Buffer.from(dockerfile(base, node)) }],
    tag = `dart-studio/runtime:${contentHash(context)}`;
  if (await inspect(docker, tag)) return tag;
  o.onProgress({ phase: 'packages', message: `Building ${tag}` });
  try {
    const stream = await docker.buildImage(Readable.from([tar(context)]), {
      t: tag,
      rm: true,
      forcerm: true,
      labels: { app: 'dart-studio' },
      abortSignal: o.signal,
    });
    await follow(stream, o.signal, (line) => {
      if (/^Step \d+\/\d+/.test(line)) o.onProgress({ phase: 'packages', message: line.slice(0, 120) });
    });
  } catch (e) {
    throw refused(buildError(e, o.signal), base);
  }
  o.onProgress({ phase: 'done', message: `${tag} is ready.`, fraction: 1 });
  return tag;
}

/** A build that fails does so at the one step that tries the base: what apt might lack is no remedy. */
const refused = (e: StudioError, base: string): StudioError =>
  e.error.kind === 'desktop.image'
    ? new StudioError(
        'desktop.image',
        e.error.message,
        `${base} must have a shell and Node.js ${OLDEST_NODE} or newer. Name another image with \`--base IMAGE\`.`,
        { cause: e },
      )
    : e;

const dockerfile = (base: string, node: TarFile | undefined): string =>
  [
    `FROM ${base}`,
    ...(node ? [`COPY ${node.path} /usr/local/bin/node`] : []),
    // A user with a name: Node's os.userInfo() throws for one without.
    `RUN node -e 'process.exit(Number(process.versions.node.split(".")[0]) < ${OLDEST_NODE} ? 1 : 0)' && (getent passwd ${RUNTIME_USER} || useradd --uid ${RUNTIME_USER} --user-group --no-create-home dart) && install -d -o ${RUNTIME_USER} -g ${RUNTIME_USER} /home/dart`,
    `COPY dist ${HOME}/dist`,
    'ENV HOME=/home/dart ORT_DISABLE_TELEMETRY=1',
    'WORKDIR /home/dart',
    `USER ${RUNTIME_USER}:${RUNTIME_USER}`,
    `ENTRYPOINT ["node", "${HOME}/dist/runtime.js"]`,
    '',
  ].join('\n');

const ARCHES: Readonly<Record<string, string>> = { x86_64: 'x64', amd64: 'x64', aarch64: 'arm64', arm64: 'arm64' };
/** The processor of the engine's machine, as Node calls it: nodes are taken to have the same. */
async function archOf(docker: Docker): Promise<string> {
  let said: string;
  try {
    said = ((await docker.info()) as { Architecture?: string }).Architecture ?? '';
  } catch (e) {
    throw engineError(e);
  }
  const arch = ARCHES[said];
  if (arch !== undefined) return arch;
  throw new StudioError(
    'desktop.image',
    `The Docker engine's machine has a processor (${said}) that ONNX Runtime is not made for.`,
    'Build on a machine with x86-64 or arm64.',
  );
}

/** The image with Node.js. Where no registry answers: Debian as the desktops have it, and the Node.js that runs this. */
async function baseOf(
  docker: Docker,
  arch: string,
  { base, onProgress, signal }: RuntimeImageOptions,
): Promise<{ readonly image: string; readonly node?: RecipeFile }> {
  const image = base ?? NODE_IMAGE;
  if (await inspect(docker, image)) return { image };
  try {
    await pullImage(docker, image, onProgress, signal);
    return { image };
  } catch (e) {
    if (signal.aborted) throw buildCancelled('Pulling the base image');
    const own = base === undefined && isPlainNode(arch);
    if (!own)
      throw new StudioError(
        'desktop.image',
        `${image} cannot be pulled: ${messageOf(e)}`,
        `Give the engine access to a registry, or name an image that it has, with Node.js ${OLDEST_NODE} or newer: \`--base IMAGE\`.`,
        { cause: e },
      );
    onProgress({ phase: 'base', message: `${image} cannot be pulled; using ${BASE_IMAGE} with Node.js of here.` });
  }
  await ensureBase(docker, await readRecipe(), onProgress, signal);
  return { image: BASE_IMAGE, node: { path: 'node', executable: true, data: await readFile(process.execPath) } };
}

/** Whether the program that runs this is a Node.js that runs in a container of such a machine, and no Electron. */
const isPlainNode = (arch: string): boolean =>
  process.platform === 'linux' &&
  process.arch === arch &&
  process.versions['electron'] === undefined &&
  Number(process.versions.node.split('.')[0]) >= OLDEST_NODE;

/** Files of the bundle's folder that the runtime reads: not the extension, not maps. */
const SHIPPED = /^(runtime(\.\w+)?\.js|sql-wasm\.wasm\.br|(engine|evaluators|images|webview)\/.*(?<!\.map|\.pyc))$/,
  ONNX = /^(package\.json|dist\/.*\.js)$/,
  ONNX_COMMON = /^(package\.json|dist\/cjs\/.*(\.js|package\.json))$/;

/** Files for the image's folder `dist`; ONNX Runtime is beside the bundle (an extension) or above it (a checkout). */
async function shippedFiles(dist: string, arch: string): Promise<RecipeFile[]> {
  const onnx = folderOf('onnxruntime-node', join(dist, 'runtime.js')),
    common = folderOf('onnxruntime-common', join(onnx, 'package.json')),
    binary = `bin/napi-v6/linux/${arch}`;
  const native = await filesOf(join(onnx, binary), `dist/node_modules/onnxruntime-node/${binary}`, /./);
  if (native.length === 0)
    throw new StudioError(
      'desktop.image',
      `ONNX Runtime for Linux (${arch}) is not installed here: this is the extension of another platform.`,
      `Build the image from a checkout, or on Linux (${arch}).`,
    );
  return [
    ...(await filesOf(dist, 'dist', SHIPPED)),
    ...(await filesOf(onnx, 'dist/node_modules/onnxruntime-node', ONNX)),
    ...(await filesOf(common, 'dist/node_modules/onnxruntime-common', ONNX_COMMON)),
    ...native,
  ];
}

/**
 * The wanted files of a folder, as `to/...`; none where there is no such folder. Executable ones stay so: the hash of a
 * desktop image covers that.
 */
async function filesOf(dir: string, to: string, wanted: RegExp): Promise<RecipeFile[]> {
  const files: RecipeFile[] = [];
  if (!existsSync(dir)) return files;
  for (const e of await readdir(dir, { recursive: true, withFileTypes: true })) {
    const from = join(e.parentPath, e.name),
      path = relative(dir, from).split(sep).join('/');
    if (!e.isFile() || !wanted.test(path)) continue;
    const executable = ((await stat(from)).mode & 0o100) !== 0;
    files.push({ path: `${to}/${path}`, executable, data: await readFile(from) });
  }
  return files;
}

/** The folder of a package, as a file finds it. */
function folderOf(name: string, from: string): string {
  const main = createRequire(from).resolve(name),
    end = main.lastIndexOf(join('node_modules', name));
  return main.slice(0, end) + join('node_modules', name);
}
