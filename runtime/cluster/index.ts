/** Module 1, environment cluster: desktops, their providers, and the pool that leases them. */
export type * from './types.js';
export { AgentClient } from './agentClient.js';
export { SandboxDesktop, type Channels, type ScreenReader } from './drivers/desktop.js';
export { FramebufferReader } from './drivers/framebuffer.js';
export { X11Client } from './drivers/x11Client.js';
export { procSettler, type Settler } from './drivers/settle.js';
export { TaskWatch } from './drivers/taskWatch.js';
export { createLocalProvider, LocalProvider, type LocalProviderOptions } from './providers/local.js';
export { createPool, type PoolOptions } from './pool.js';
export { createProvider, type ProviderOptions } from './providers/choose.js';
export { createDockerProvider, desktopPath, type DesktopPath, type DockerProviderOptions } from './providers/docker.js';
