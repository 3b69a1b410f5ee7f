import { existsSync, readFileSync, watch } from 'node:fs';
import { AgentClient } from '../agentClient.js';
import type { FramebufferThreads } from '../drivers/framebufferThreads.js';
import { channelsAt } from '../drivers/visibleRoot.js';
import type { Channels } from '../drivers/desktop.js';
import { errorCode, type Size } from '../../domain/index.js';

/**
 * The fast path into a container on this machine's own kernel: its sockets, its framebuffer file and its processes, all
 * through /proc/PID/root, which needs the right to trace the container's processes (root, as a rule) and no folder
 * shared with it.
 */
export function canReach(pid: number, containerId: string): boolean {
  if (process.platform !== 'linux' || pid <= 0) return false;
  // A remote engine's pid may be another process here: only its mounts, which contain the container's id, prove that it
  // is ours. (Not its environment: right after the start the process may still be the container runtime, about to
  // become the agent.)
  try {
    return (
      readFileSync(`/proc/${pid}/mountinfo`, 'latin1').includes(containerId) && existsSync(`/proc/${pid}/root/run/dart`)
    );
  } catch {
    return false;
  }
}

/** Connects to the agent as soon as it listens. */
export async function openAgent(pid: number, signal: AbortSignal): Promise<AgentClient> {
  const folder = `/proc/${pid}/root/run/dart`;
  const path = `${folder}/agent.sock`;
  let wake: () => void = () => {};
  const watcher = watch(folder, () => wake());
  const stop = (): void => wake();
  signal.addEventListener('abort', stop);
  try {
    for (;;) {
      signal.throwIfAborted();
      const changed = new Promise<void>((r) => {
        wake = r;
      });
      try {
        return await AgentClient.open(path);
      } catch (e) {
        const code = errorCode(e);
        if (code !== 'ENOENT' && code !== 'ECONNREFUSED') throw e;
        // Refused: the socket exists but nothing listens yet. No event follows its listen(), which comes within
        // microseconds.
        if (code === 'ECONNREFUSED') setTimeout(() => wake(), 2);
        await changed;
      }
    }
  } finally {
    signal.removeEventListener('abort', stop);
    watcher.close();
  }
}

/** Channels into a container, whose file system its first process shows. */
export const fastChannels = (pid: number, screen: Size, threads?: FramebufferThreads): Channels =>
  channelsAt(`/proc/${pid}/root`, screen, threads);
