import { existsSync, readFileSync } from 'node:fs';
import { createLocalProvider, type LocalProvider } from '../../../runtime/cluster/index.js';
import type {
  Desktop,
  DesktopEvent,
  DesktopSpec,
  SettleOptions,
  SettleReport,
} from '../../../runtime/cluster/types.js';
import { ensureRootfs } from '../../../runtime/cluster/imageBuild.js';

export const SMALL: DesktopSpec = { screen: { width: 640, height: 400 }, memoryMb: 512, pids: 256 };
export const HD: DesktopSpec = { ...SMALL, screen: { width: 1280, height: 720 } };

/** Why local desktops cannot run here, or undefined. Builds the root file system when it is missing. */
export async function whyNoLocalDesktops(): Promise<string | undefined> {
  if (process.platform !== 'linux') return 'local desktops need Linux';
  if (!existsSync('/usr/bin/bwrap')) return 'bubblewrap is not installed';
  if (!process.env['DART_STUDIO_ROOTFS']) await ensureRootfs();
  const s = await createLocalProvider().status();
  return s.ok ? undefined : s.detail;
}

export const localProvider = (): LocalProvider => createLocalProvider();

/** What is written about a local desktop while it is there: bubblewrap and PID 1, and its control groups. */
export interface SandboxRecord {
  readonly processes: readonly { readonly pid: number }[];
  readonly cgroups: readonly string[];
}
export const sandboxRecord = (id: string): SandboxRecord =>
  JSON.parse(readFileSync(`/dev/shm/dart-studio-${process.getuid!()}/${id}.json`, 'utf8')) as SandboxRecord;

/** The next event that fits. */
export const nextEvent = (d: Desktop, fits: (e: DesktopEvent) => boolean): Promise<DesktopEvent> =>
  new Promise((resolve) => {
    const off = d.onEvent((e) => {
      if (fits(e)) {
        off();
        resolve(e);
      }
    });
  });

/** Waits until the desktop rests, however long the machine takes; what it said last. */
export async function untilSettled(d: Pick<Desktop, 'settle'>, o?: SettleOptions): Promise<SettleReport> {
  for (;;) {
    const said = await d.settle(o);
    if (said.settled) return said;
  }
}

/** A shell command inside; its standard output, trimmed. */
export async function sh(d: Desktop, script: string): Promise<string> {
  const r = await d.exec(['sh', '-c', script], { timeoutMs: 20_000 });
  if (r.timedOut) throw new Error(`no end after 20 s: ${script}`);
  return r.stdout.toString().trim();
}
