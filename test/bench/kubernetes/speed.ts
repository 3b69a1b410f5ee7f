import { createDockerProvider } from '../../../runtime/cluster/providers/docker.js';
import { createLocalProvider } from '../../../runtime/cluster/providers/local.js';
import type { Desktop, DesktopProvider } from '../../../runtime/cluster/types.js';
import { StudioError, toRunError } from '../../../runtime/domain/index.js';
import { count, note, provider, spec, summary, timed } from './context.js';

/** Reset, observe, click and settle of one desktop. */
async function figures(p: DesktopProvider, d: Desktop): Promise<object> {
  const resets: number[] = [],
    looks: number[] = [],
    clicks: number[] = [];
  for (let i = 0; i < 20; i++) resets.push((await timed(() => p.reset(d))).ms);
  await d.spawn(['mousepad']);
  await d.settle({ horizonMs: 250, maxMs: 20_000 });
  for (let i = 0; i < 100; i++) {
    const look = await timed(() => d.observe());
    looks.push(look.ms);
    d.recycle?.(look.value);
  }
  let detector = '';
  for (let i = 0; i < 40; i++) {
    const click = await timed(async () => {
      // So far apart that no two are a double click, before which a desktop waits.
      await d.perform({ type: 'click', at: { x: 100 + 20 * i, y: 200 + 20 * (i % 2) } });
      return d.settle();
    });
    clicks.push(click.ms);
    detector = click.value.detector;
  }
  return { resetMs: summary(resets), observeMs: summary(looks), clickAndSettleMs: summary(clicks), detector };
}

/** Creates one desktop, then many at once; figures of one, beside the other providers on this machine. */
export async function speed(): Promise<void> {
  const p = provider(),
    one = await timed(() => p.create(spec));
  note('create one, ms', one.ms);
  note('kubernetes', await figures(p, one.value));
  const many = await timed(() => Promise.all(Array.from({ length: count }, () => timed(() => p.create(spec)))));
  note(`create ${count} at once, ms`, { all: many.ms, each: summary(many.value.map((m) => m.ms)) });
  await Promise.all([one.value, ...many.value.map((m) => m.value)].map((d) => p.destroy(d)));
  await beside('docker, portable', () => createDockerProvider({ spares: 0, path: 'portable' }));
  await beside('docker, fast where it can be', () => createDockerProvider({ spares: 0, path: 'auto' }));
  await beside('local', () => createLocalProvider());
}

async function beside(name: string, make: () => DesktopProvider): Promise<void> {
  const p = make();
  try {
    const status = await p.status();
    if (!status.ok) throw new StudioError(status.problem!.kind, status.problem!.message, status.problem!.remedy);
    note(name, await figures(p, await p.create(spec)));
  } catch (e) {
    note(name, toRunError(e).message);
  } finally {
    await p.dispose();
  }
}
