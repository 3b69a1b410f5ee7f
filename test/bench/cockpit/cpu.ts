import { readdirSync, readFileSync } from 'node:fs';

/** Clock ticks a second; 100 on every Linux this runs on. */
const ticks = 100;
interface Stat {
  readonly parent: number;
  readonly cpuMs: number;
}

function stat(pid: string): Stat | undefined {
  try {
    const s = readFileSync(`/proc/${pid}/stat`, 'utf8'),
      f = s.slice(s.lastIndexOf(')') + 2).split(' ');
    return { parent: Number(f[1]), cpuMs: ((Number(f[11]) + Number(f[12])) * 1000) / ticks };
  } catch {
    return undefined;
  } // it has ended
}
/** Processor time so far, ms, of every Chromium renderer under a process. */
function renderersMs(root: number): number {
  const all = new Map(
    readdirSync('/proc')
      .filter((n) => /^\d+$/.test(n))
      .flatMap((n): [number, Stat][] => {
        const s = stat(n);
        return s ? [[Number(n), s]] : [];
      }),
  );
  const below = (pid: number): boolean => {
    for (let p: number | undefined = pid; p; p = all.get(p)?.parent) if (p === root) return true;
    return false;
  };
  const isRenderer = (pid: number): boolean => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('--type=renderer');
    } catch {
      return false;
    }
  };
  return [...all].filter(([pid]) => below(pid) && isRenderer(pid)).reduce((a, [, s]) => a + s.cpuMs, 0);
}
/** Share of one core that the renderers of our browser use for `ms`. */
export async function renderersShare(ms: number): Promise<number> {
  const t0 = performance.now(),
    before = renderersMs(process.pid);
  await new Promise((r) => setTimeout(r, ms));
  return (renderersMs(process.pid) - before) / (performance.now() - t0);
}
