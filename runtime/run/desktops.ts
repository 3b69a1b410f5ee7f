import type { RunConfig } from '../config/index.js';
import { StudioError } from '../domain/index.js';
import { createLocalProvider } from '../cluster/index.js';
import { createDockerProvider } from '../cluster/providers/docker.js';
import type { DesktopProvider, DesktopSpec } from '../cluster/types.js';

type DesktopsConfig = RunConfig['desktops'];

export const specOf = (c: DesktopsConfig, o: { a11y?: boolean; run?: string } = {}): DesktopSpec => ({
  screen: c.screen, memoryMb: c.memoryMb, pids: c.pids, cpus: c.cpus,
  ...(o.a11y ? { a11y: true } : {}), ...(o.run ? { labels: { run: o.run } } : {}),
});

/** The providers a configuration allows, in order of preference. */
export function providersOf(c: DesktopsConfig): DesktopProvider[] {
  const docker = (): DesktopProvider => createDockerProvider(c.hosts ? { hosts: c.hosts } : {});
  if (c.provider === 'docker') return [docker()];
  if (c.provider === 'local') return [createLocalProvider()];
  return [docker(), createLocalProvider()];
}

/** `auto` takes Docker when an engine answers, else local processes, else says what each of them lacks. */
export async function chooseProvider(c: DesktopsConfig): Promise<DesktopProvider> {
  const problems: string[] = [], remedies: string[] = [];
  for (const p of providersOf(c)) {
    const s = await p.probe();
    if (s.ok) return p;
    await p.dispose();
    problems.push(`${p.name}: ${s.problem?.message ?? s.detail}`);
    remedies.push(s.problem?.remedy ?? '');
  }
  throw new StudioError('desktop.unavailable', `No desktops can run here. ${problems.join(' ')}`, remedies.filter(Boolean).join(' Or: '));
}
