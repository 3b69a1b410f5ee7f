import type { Size } from '../../domain/index.js';
import type { Channels } from './desktop.js';
import { FramebufferReader } from './framebuffer.js';
import type { FramebufferThreads } from './framebufferThreads.js';
import { procSettler } from './settle.js';
import { TaskWatch } from './taskWatch.js';
import { unixSocket } from './unixSocket.js';
import { X11Client } from './x11Client.js';

/** Channels of a desktop whose file system this process sees at `root`. */
export function channelsAt(root: string, screen: Size, threads?: FramebufferThreads): Channels {
  const display = `${root}/tmp/.X11-unix/X0`;
  return {
    openX: () => X11Client.open(display, screen),
    openScreen: (walled) =>
      new FramebufferReader(`${root}/run/dart/fb/Xvfb_screen0`, screen, threads, walled ? display : undefined),
    openSettler: (x) => procSettler(x, new TaskWatch(`${root}/proc`)),
    openSocket: (path) => unixSocket(`${root}${path}`),
  };
}
