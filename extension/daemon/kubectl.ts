/**
 * Calls to `kubectl`, a program of this machine: always as arguments of a process of its own, never through a shell.
 * Names from people and clusters are checked, so that none of them is taken for an option. Plain Node.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { isObject } from '../../runtime/protocol/shared.js';
import { RUNTIME_POD } from '../../runtime/protocol/runtimePod.js';
import { discoveryFile } from '../../runtime/protocol/version.js';
import { DaemonError } from './types.js';

/** Names of a context may be addresses or ARNs; those that begin as an option do are refused all the same. */
export const isContext = (s: string): boolean => /^[\w.@:/][\x20-\x7e]{0,252}$/.test(s);
/** A DNS label, as the API wants it. */
export const isNamespace = (s: string): boolean => /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(s);
const isPod = (s: string): boolean => /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(s);

/** A namespace of a cluster, as this machine's kubectl reaches it. */
export interface Place {
  /** Program; a bare name is looked for on the PATH. */
  readonly program: string;
  /** Folder that it is run in. */
  readonly cwd: string;
  /** Context of the kubeconfig; default: its current one. */
  readonly context?: string | undefined;
  readonly namespace: string;
}
const invalid = (what: string): DaemonError =>
  new DaemonError('remote.invalid', `${what} cannot be used.`, 'Choose another one.');
/** Throws `remote.invalid` for names that could be anything but names. */
function where({ context, namespace }: Place): string[] {
  if (context !== undefined && !isContext(context)) throw invalid(`The context ${JSON.stringify(context)}`);
  if (!isNamespace(namespace)) throw invalid(`The namespace ${JSON.stringify(namespace)}`);
  return [...(context === undefined ? [] : [`--context=${context}`]), `--namespace=${namespace}`];
}
function podName(name: string): string {
  if (!isPod(name)) throw invalid(`The pod ${JSON.stringify(name)}`);
  return name;
}
export const contextsArguments = ['config', 'get-contexts', '--output=name'];
export const podsArguments = (p: Place): string[] => [
  'get',
  'pods',
  ...where(p),
  `--selector=${Object.entries(RUNTIME_POD.labels)
    .map(([k, v]) => `${k}=${v}`)
    .join(',')}`,
  '--field-selector=status.phase=Running',
  '--output=json',
  '--request-timeout=15s',
];
/** Prints the runtime's record: its token comes over standard output alone. */
export const recordArguments = (p: Place, pod: string): string[] => [
  'exec',
  ...where(p),
  `--container=${RUNTIME_POD.container}`,
  podName(pod),
  '--',
  'cat',
  `${RUNTIME_POD.storage}/${discoveryFile}`,
];
/** The port here is the system's choice. */
export const forwardArguments = (p: Place, pod: string, port: number): string[] => [
  'port-forward',
  ...where(p),
  '--address=127.0.0.1',
  `pod/${podName(pod)}`,
  `:${port}`,
];

export interface Candidate {
  readonly pod: string;
  /** ms since the epoch. */
  readonly createdAt: number;
}
/** Newest first; a pod whose name is none is left out. Throws `remote.invalid`. */
export function parsePods(text: string): Candidate[] {
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch {
    list = undefined;
  }
  const items = isObject(list) ? list['items'] : undefined;
  if (!Array.isArray(items)) throw invalid('What kubectl printed as a list of pods');
  return items
    .map((i: unknown) => (isObject(i) && isObject(i['metadata']) ? i['metadata'] : {}))
    .flatMap(({ name, creationTimestamp, deletionTimestamp }) =>
      typeof name === 'string' && isPod(name) && deletionTimestamp === undefined
        ? [{ pod: name, createdAt: Date.parse(String(creationTimestamp)) || 0 }]
        : [],
    )
    .sort((a, b) => b.createdAt - a.createdAt);
}
/** The port here, from what `port-forward` prints. */
export const forwardedPort = (text: string): number | undefined =>
  Number(/^Forwarding from 127\.0\.0\.1:(\d{1,5}) ->/m.exec(text)?.[1]) || undefined;

const noPlugin = /getting credentials:.*(not found|no such file)|exec: executable \S+ not found/i;
/** The error for a failure of kubectl, in our words; `said` is its standard error. */
export function faultOf(said: string, program: string): DaemonError {
  const lines = said
      .split('\n')
      .map((l) =>
        l
          .replace(/[^\x20-\x7e]+/g, ' ')
          .trim()
          .slice(0, 300),
      )
      .filter((l) => l !== '' && !/^command terminated with exit code|^Defaulted container/.test(l)),
    // Advice of several lines follows it.
    plugin = lines.find((l) => noPlugin.test(l)),
    line = plugin ?? lines.at(-1);
  const fault = (kind: DaemonError['kind'], message: string, remedy: string): DaemonError =>
    new DaemonError(kind, line ? `${message} ${line}` : message, remedy);
  if (plugin !== undefined)
    return fault(
      'remote.program',
      'A program that this context of the kubeconfig logs in with is missing:',
      'Install this credential plug-in on the PATH that VS Code was started with, then attach again.',
    );
  if (/forbidden|unauthorized|must be logged in|provide credentials/i.test(said))
    return fault(
      'remote.rights',
      'The cluster does not allow it:',
      'You need the rights to get and list pods, and to create pods/exec and pods/portforward, in this namespace.',
    );
  if (/^cat: .*no such file/im.test(said))
    return fault(
      'remote.unreachable',
      'The runtime in this pod does not listen yet.',
      'Try again in a moment; an image older than this extension has none to attach to.',
    );
  if (/context\b.*(does not exist|was not found)/i.test(said))
    return fault('remote.invalid', 'The kubeconfig has no such context:', 'Choose another one.');
  if (/notfound|not found|completed pod|is not running|unable to upgrade connection.*container/i.test(said))
    return fault('remote.gone', 'The runtime is not there:', 'Its run folder is on the volume of its Job.');
  return fault('remote.unreachable', `${program} failed:`, 'Check the connection to the cluster, then attach again.');
}
export const missing = (program: string, why: string): DaemonError =>
  new DaemonError(
    'remote.program',
    `${program} cannot be run: ${why}`,
    'Install kubectl, or set dartStudio.kubernetes.kubectl to its path.',
  );
export const late = (program: string): DaemonError =>
  new DaemonError(
    'remote.unreachable',
    `${program} took too long.`,
    'Check the connection to the cluster, then attach again.',
  );
export const cancelledWords = (): DaemonError => new DaemonError('cancelled', 'Attaching was cancelled.', '');

/** Starts kubectl without a shell and without input. */
export const start = (p: Pick<Place, 'program' | 'cwd'>, args: readonly string[]): ChildProcess =>
  spawn(p.program, args, { cwd: p.cwd, stdio: ['ignore', 'pipe', 'pipe'], windowsHide: true });

const mostOutput = 8 << 20,
  mostSaid = 16_384;
/** Keeps the end of what a program says beside its output. */
export function keepSaid(child: ChildProcess): () => string {
  let said = '';
  child.stderr?.on('data', (d: Buffer) => {
    said = (said + d.toString()).slice(-mostSaid);
  });
  return () => said;
}
/** The output of kubectl. Rejects with a DaemonError; the output is never part of one, since it may hold a token. */
export function kubectl(
  p: Pick<Place, 'program' | 'cwd'>,
  args: readonly string[],
  o: { readonly signal?: AbortSignal | undefined; readonly ms?: number } = {},
): Promise<string> {
  return new Promise((done, fail) => {
    const { signal } = o;
    if (signal?.aborted) {
      fail(cancelledWords());
      return;
    }
    const child = start(p, args),
      said = keepSaid(child);
    let out = '';
    const end = (e: DaemonError): void => {
      fail(e);
      child.kill('SIGKILL');
    };
    const timer = setTimeout(() => end(late(p.program)), o.ms ?? 30_000),
      onAbort = (): void => end(cancelledWords());
    signal?.addEventListener('abort', onAbort);
    child.stdout?.on('data', (d: Buffer) => {
      out += d.toString();
      if (out.length > mostOutput) end(invalid('An answer of kubectl without end'));
    });
    child.once('error', (e) => end(missing(p.program, e.message)));
    child.once('close', (code) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      if (code === 0) done(out);
      else fail(faultOf(said(), p.program));
    });
  });
}
