import { messageOf, StudioError } from '../../../domain/index.js';
import { jsonOrNothing } from '../../../foreign/json.js';
import type { Pod } from './pods.js';

/** Body of a refused call. */
export interface StatusBody {
  readonly message?: string;
  readonly reason?: string;
  readonly code?: number;
}

const BOUNDS = { depth: 64, values: 1 << 12 };

/** An answer's Status object; an empty one when it is something else. */
export function parseStatus(text: string): StatusBody {
  const j = jsonOrNothing(text, BOUNDS);
  if (typeof j === 'object' && j !== null) return j;
  return j !== undefined || text === '' ? {} : { message: text.slice(0, 300) };
}

const BUILD = '`dart-studio desktop build --push REF`';

/** The API server does not answer. */
export const awayFault = (cluster: string, e: unknown): StudioError =>
  new StudioError(
    'desktop.unavailable',
    `The API server of ${cluster} does not answer: ${messageOf(e)}`,
    'Check the network and the context (`kubectl get pods`). A run keeps its desktops meanwhile, and tries again to start others.',
    { cause: e },
  );

/** A refused call, in our words. `what` was to be done. */
export function answerFault(status: number, body: StatusBody, what: string, cluster: string): StudioError {
  const said = body.message ?? `it answered ${status}`,
    details = { status, ...(body.reason ? { reason: body.reason } : {}) };
  const fault = (kind: 'desktop.unavailable' | 'desktop.start' | 'desktop.lost', message: string, remedy: string) =>
    new StudioError(kind, message, remedy, { details });
  if (status === 401)
    return fault(
      'desktop.unavailable',
      `${cluster} does not accept the credentials: ${said}`,
      'Log in to the cluster again; `kubectl get pods` must work on this machine.',
    );
  // Handled as a cluster whose places are all taken: the pool asks again soon, and no desktop is to blame.
  if (status === 403 && /exceeded quota/i.test(said))
    return fault(
      'desktop.unavailable',
      `The namespace's quota allows no more desktops: ${said}`,
      'Lower desktops.count, or raise the ResourceQuota (`dart-studio kubernetes manifests --desktops N` prints one that fits).',
    );
  if (status === 403 && /violates PodSecurity/i.test(said))
    return fault(
      'desktop.unavailable',
      `The namespace's pod security refuses desktops: ${said}`,
      'Label the namespace pod-security.kubernetes.io/enforce=privileged, as `dart-studio kubernetes manifests` does: a desktop has few capabilities, but SYS_PTRACE is one of them.',
    );
  if (status === 403)
    return fault(
      'desktop.unavailable',
      `${cluster} does not allow to ${what}: ${said}`,
      'Apply what `dart-studio kubernetes manifests` prints, or use a context with these rights.',
    );
  if (status === 404)
    return /pods? ".*" not found|container not found/i.test(said)
      ? fault('desktop.lost', `The desktop's pod is gone: ${said}`, 'The pool replaces it automatically.')
      : fault(
          'desktop.unavailable',
          `${cluster} has no such place: ${said}`,
          'Create the namespace (`dart-studio kubernetes manifests | kubectl apply -f -`), or correct desktops.kubernetes.namespace.',
        );
  if (status === 429 || status >= 500)
    return fault(
      'desktop.unavailable',
      `The API server of ${cluster} could not ${what}: ${said}`,
      'If this goes on, look at the API server, or start fewer desktops. A run tries again.',
    );
  return fault(
    'desktop.start',
    `${cluster} refused to ${what} (${status}): ${said}`,
    'Correct desktops.kubernetes in the run file; `dart-studio doctor --run RUN.json` tries it.',
  );
}

const IMAGE_REASONS = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'ErrImageNeverPull',
  'InvalidImageName',
  'ImageInspectError',
  'RegistryUnavailable',
]);
const CONTAINER_REASONS = new Set(['CreateContainerConfigError', 'CreateContainerError', 'RunContainerError']);

/** Why a pod will not start, when it is certain that waiting does not help; undefined while it may start. */
export function startFault(pod: Pod | undefined, image: string): StudioError | undefined {
  if (!pod) return gone(undefined);
  const waiting = pod.status?.containerStatuses?.[0]?.state?.waiting;
  if (waiting?.reason && IMAGE_REASONS.has(waiting.reason))
    return new StudioError(
      'desktop.image',
      `The cluster cannot have the desktop image ${image} (${waiting.reason}): ${waiting.message ?? 'it gives no reason'}`,
      `Push it with ${BUILD} and set desktops.kubernetes.image to REF (and pullSecret for a private registry), or load the file of \`dart-studio desktop export\` into every node.`,
      { details: { reason: waiting.reason, image } },
    );
  if (waiting?.reason && CONTAINER_REASONS.has(waiting.reason))
    return new StudioError(
      'desktop.start',
      `The node cannot start a desktop (${waiting.reason}): ${waiting.message ?? 'it gives no reason'}`,
      'Look at `kubectl describe pod` in the namespace; `dart-studio doctor --run RUN.json` starts one to try.',
      { details: { reason: waiting.reason } },
    );
  // Python's answer to a program that is not there
  if (pod.status?.containerStatuses?.[0]?.state?.terminated?.exitCode === 2)
    return new StudioError(
      'desktop.image',
      `The image ${image} cannot be started on Kubernetes: it is older than this version, or not a desktop image.`,
      `Push the present one with ${BUILD}.`,
      { details: { exitCode: 2, image } },
    );
  return endFault(pod);
}

/** Why a pod that ran has ended; undefined while it runs. */
export function endFault(pod: Pod | undefined): StudioError | undefined {
  if (!pod) return gone(undefined);
  const { phase, reason, message } = pod.status ?? {};
  const ended = pod.status?.containerStatuses?.[0]?.state?.terminated;
  if (reason === 'Evicted')
    return over(`The node evicted the desktop: ${message ?? 'it ran short of something'}`, 'Evicted', EVICTED);
  if (reason === 'NodeLost' || phase === 'Unknown')
    return over(`The desktop's node is lost: ${message ?? 'it does not answer'}`, 'NodeLost', NODE);
  const taken = disruption(pod);
  if (taken) return over(`The cluster takes the desktop down: ${taken}`, 'Disrupted', REPLACED);
  if (reason === 'DeadlineExceeded')
    return over('The desktop reached its longest lifetime (activeDeadlineSeconds).', reason, DEADLINE);
  if (ended?.reason === 'OOMKilled')
    return over('The desktop ran out of memory and the node ended it (OOMKilled).', 'OOMKilled', MEMORY);
  if (ended || phase === 'Succeeded' || phase === 'Failed')
    return over(
      `The desktop's pod ended${ended?.exitCode === undefined ? '' : ` with exit code ${ended.exitCode}`}${ended?.reason ? ` (${ended.reason})` : ''}${reason ? `: ${reason}${message ? `, ${message}` : ''}` : ''}.`,
      ended?.reason ?? reason ?? 'Ended',
      REPLACED,
    );
  if (pod.metadata?.deletionTimestamp) return gone('it was deleted');
  return undefined;
}

const REPLACED = 'The pool replaces it automatically.',
  EVICTED = `${REPLACED} If this happens often, raise desktops.kubernetes.requests so that fewer desktops share a node.`,
  NODE = `${REPLACED} Its pod is removed by the cluster when the node is back or deleted.`,
  DEADLINE = `${REPLACED} Raise desktops.kubernetes.lifeHours, or lower desktops.hardResetEvery.`,
  MEMORY = `${REPLACED} If this happens often, raise desktops.memoryMb.`;

const over = (message: string, reason: string, remedy: string): StudioError =>
  new StudioError('desktop.lost', message, remedy, { details: { reason } });
const gone = (why: string | undefined): StudioError =>
  over(`The desktop's pod is gone${why ? `: ${why}` : ' from the cluster'}.`, 'Deleted', REPLACED);

/** The reason that a taint, a drain or a preemption gives for ending a pod. */
function disruption(pod: Pod): string | undefined {
  const c = pod.status?.conditions?.find((x) => x.type === 'DisruptionTarget' && x.status === 'True');
  return c && (c.message ?? c.reason);
}

/** Why a pod has not started within its time. */
export function lateFault(pod: Pod | undefined, seconds: number, events: readonly string[] = []): StudioError {
  const scheduled = pod?.status?.conditions?.find((c) => c.type === 'PodScheduled');
  if (scheduled?.status === 'False')
    return new StudioError(
      'desktop.start',
      `No node has room for another desktop: ${scheduled.message ?? scheduled.reason ?? 'it was not scheduled'}`,
      'Lower desktops.count or desktops.kubernetes.requests, add nodes, or correct nodeSelector and tolerations.',
      { details: { reason: scheduled.reason ?? 'Unschedulable' } },
    );
  const waiting = pod?.status?.containerStatuses?.[0]?.state?.waiting;
  return new StudioError(
    'desktop.start',
    `A desktop's pod did not start within ${seconds} s${waiting?.reason ? ` (${waiting.reason})` : ''}${events.length > 0 ? `: ${events.at(-1)}` : '.'}`,
    'Look at `kubectl describe pod` in the namespace. A first pull of the image takes long: raise desktops.kubernetes.startSeconds.',
    { details: { reason: waiting?.reason ?? 'Pending', events } },
  );
}
