import type Docker from 'dockerode';
import { errorCode } from '../../domain/index.js';
import { orUndefined } from '../../concurrency/failures.js';
import { withDeadline } from '../../concurrency/deadline.js';
import { OWNER, ROLE } from './dockerContainer.js';
import { isOrphan, ownerLabel, parseOwner, type Owner } from './dockerHosts.js';
import { engineError, LABEL, statusOf } from './dockerImage.js';

/** Time limit of one call, and of a cancelled start's wait for the name of what the engine is making. */
const CALL_MS = 20_000,
  GRACE_MS = 5000;

/** An engine and how it is called in messages. */
export interface NamedEngine {
  readonly name: string;
  readonly docker: Docker;
}

/** The containers of desktops in an engine, whoever made them. */
const desktopsOf = async (h: NamedEngine): Promise<Docker.ContainerInfo[]> => {
  const list = (): Promise<Docker.ContainerInfo[]> =>
    withDeadline(CALL_MS, [], (abortSignal) =>
      h.docker.listContainers({ all: true, filters: { label: [LABEL] }, abortSignal } as Docker.ContainerListOptions),
    );
  const all = await list()
    // A connection that was kept may have ended with an engine that is back by now.
    .catch((e: unknown) => (['EPIPE', 'ECONNRESET'].includes(errorCode(e) ?? '') ? list() : Promise.reject(e)))
    .catch((e: unknown) => {
      throw engineError(e, h.name);
    });
  return all.filter((c) => c.Labels[ROLE] === 'desktop');
};

/** Containers that this process made, with their names. */
export async function ownIn(h: NamedEngine, me: Owner): Promise<{ item: Docker.Container; names: string[] }[]> {
  const mine = ownerLabel(me);
  return (await desktopsOf(h))
    .filter((c) => c.Labels[OWNER] === mine)
    .map((c) => ({ item: h.docker.getContainer(c.Id), names: c.Names.map((n) => n.replace(/^\//, '')) }));
}

/** Removes those whose process is gone; returns how many. */
export async function removeOrphans(h: NamedEngine, me: Owner): Promise<number> {
  const orphans = (await desktopsOf(h)).filter((c) => isOrphan(parseOwner(c.Labels[OWNER]), me));
  await Promise.all(orphans.map((c) => removeContainer(h.docker.getContainer(c.Id))));
  return orphans.length;
}

/**
 * Makes a container. The engine makes it whether or not somebody still listens: one whose start is cancelled meanwhile
 * waits a little for the answer, which names what is to be removed. Rejects with the reason of `signal` then.
 */
export async function makeContainer(
  docker: Pick<Docker, 'createContainer'>,
  options: Docker.ContainerCreateOptions,
  signal: AbortSignal,
): Promise<Docker.Container> {
  signal.throwIfAborted();
  const patience = new AbortController();
  let timer: NodeJS.Timeout | undefined, made: Docker.Container;
  const stopped = (): void => {
    timer = setTimeout(() => patience.abort(), GRACE_MS);
  };
  signal.addEventListener('abort', stopped, { once: true });
  try {
    made = await docker.createContainer({ ...options, abortSignal: patience.signal });
  } catch (e) {
    signal.throwIfAborted();
    throw e;
  } finally {
    signal.removeEventListener('abort', stopped);
    clearTimeout(timer);
  }
  if (signal.aborted) {
    await orUndefined(removeContainer(made), 'its caller takes it for left over');
    throw signal.reason;
  }
  return made;
}

/** Removes a container for good; one that is gone or being removed is fine. */
export async function removeContainer(c: Docker.Container): Promise<void> {
  try {
    await withDeadline(CALL_MS, [], (abortSignal) => c.remove({ force: true, v: true, abortSignal } as object));
  } catch (e) {
    const status = statusOf(e);
    if (status !== 404 && status !== 409) throw engineError(e);
  }
}
