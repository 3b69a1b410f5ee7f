import type { AgentClient } from '../agentClient.js';
import { HORIZON_MS, MAX_MS, TERMINAL_HOLD_MS, type Settler } from './settle.js';
import type { X11Client } from './x11Client.js';

/** Settling judged by the agent inside the desktop, for desktops whose tasks this process may not inspect. */
export function agentSettler(x: X11Client, agent: AgentClient): Settler {
  return {
    async settle(o = {}) {
      const began = performance.now();
      await x.sync();
      const r = await agent.settle({
        horizonMs: o.horizonMs ?? HORIZON_MS,
        maxMs: o.maxMs ?? MAX_MS,
        terminalHoldMs: o.terminalHoldMs ?? TERMINAL_HOLD_MS,
      });
      return { ...r, ms: performance.now() - began };
    },
    close: () => undefined,
  };
}
