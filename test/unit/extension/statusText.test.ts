import { describe, expect, it } from 'vitest';
import { statusText, tooltipCommands, type StatusFacts } from '../../../extension/statusText.js';
import type { DaemonState } from '../../../webview/protocol.js';
import { run, status } from '../../helpers/extension/rows.js';

const facts = (o: Partial<StatusFacts> = {}): StatusFacts => ({
  daemon: 'ready',
  detail: undefined,
  active: undefined,
  trusted: true,
  ...o,
});

describe('status bar', () => {
  it('shows success and rollouts an hour of a run', () => {
    const s = statusText(facts({ active: run({ status: status() }) }));
    expect(s).toMatchObject({
      text: '$(pulse) DART last 64 rollouts 63 % · 119/h',
      command: 'dartStudio.openDashboard',
      severity: 'none',
    });
    expect(s.tooltip).toContain('continues when VS Code is closed');
  });
  it('names the phase before training, and never shows a rate of nothing', () => {
    expect(
      statusText(
        facts({ active: run({ status: status({ phase: 'warm start', success: undefined, rolloutsPerHour: 0 }) }) }),
      ).text,
    ).toBe('$(pulse) DART warm start');
  });
  it('says to which runtime elsewhere the window is attached, offers the way back, and never to end that one', () => {
    const attached = 'dart-studio-train-x7k2p';
    for (const daemon of ['ready', 'reconnecting', 'failed', 'incompatible', 'stopped'] as DaemonState[]) {
      const s = statusText(facts({ attached, daemon }));
      expect(s.text, daemon).toContain(`$(remote) ${attached}`);
      expect(s.spoken, daemon).toContain(`attached to ${attached}`);
      expect(s.tooltip, daemon).toContain('command:dartStudio.detachRuntime');
      expect(s.tooltip + s.command, daemon).not.toMatch(/dartStudio\.(stop|restart)Runtime|startTraining/);
    }
    expect(statusText(facts({ attached: 'x'.repeat(200) })).text.length).toBeLessThan(60);
    expect(statusText(facts({ attached: '[a](command:evil) <b>' })).tooltip).not.toMatch(/\]\(command:evil|<b>/);
    expect(statusText(facts({ attached, trusted: false })).text).not.toContain(attached);
  });
  it('spins only while something is worked on', () => {
    const spins = (o: Partial<StatusFacts>): boolean => statusText(facts(o)).text.includes('~spin');
    expect((['starting', 'attaching', 'reconnecting'] as DaemonState[]).every((daemon) => spins({ daemon }))).toBe(
      true,
    );
    expect(spins({ active: run({ state: 'stopping' }) })).toBe(true);
    expect([
      spins({}),
      spins({ daemon: 'stopped' }),
      spins({ daemon: 'failed' }),
      spins({ active: run({ state: 'paused' }) }),
      spins({ active: run({ status: status() }) }),
    ]).toEqual([false, false, false, false, false]);
  });
  it('is coloured only where the user must act', () => {
    expect(
      (['stopped', 'starting', 'attaching', 'ready', 'reconnecting', 'incompatible', 'failed'] as DaemonState[]).map(
        (daemon) => statusText(facts({ daemon })).severity,
      ),
    ).toEqual(['none', 'none', 'none', 'none', 'none', 'warning', 'error']);
  });
  it('offers resume when paused, nothing of the run when it is stopping', () => {
    expect(
      statusText(facts({ active: run({ state: 'paused', status: status({ state: 'paused' }) }) })).tooltip,
    ).toContain('command:dartStudio.resume');
    expect(statusText(facts({ active: run({ state: 'stopping' }) })).tooltip).not.toContain('command:dartStudio.pause');
  });
  it('starts nothing in Restricted Mode', () => {
    expect(statusText(facts({ trusted: false, daemon: 'stopped' })).tooltip).not.toMatch(
      /command:dartStudio\.(start|stop|restart)/,
    );
  });
  it('passes on why the runtime is not there, escaped', () => {
    const s = statusText(
      facts({
        daemon: 'failed',
        detail: { kind: 'daemon.failed', message: 'It ended [x](command:evil)', remedy: 'Look.' },
      }),
    );
    expect(s.tooltip).not.toContain('](command:evil)');
    expect(s.tooltip).toContain('Look');
  });
  it('links only to commands that the tooltip may run', () => {
    for (const f of [
      facts(),
      facts({ trusted: false }),
      facts({ daemon: 'stopped' }),
      facts({ daemon: 'incompatible' }),
      facts({ daemon: 'failed' }),
      facts({ active: run({ status: status() }) }),
      facts({ active: run({ state: 'paused' }) }),
    ]) {
      for (const [, id] of statusText(f).tooltip.matchAll(/\(command:([\w.]+)\)/g))
        expect(tooltipCommands).toContain(id);
    }
  });
});
