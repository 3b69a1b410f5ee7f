import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { connectEngine, ensureImage } from '../../../runtime/cluster/imageBuild.js';
import { createPool } from '../../../runtime/cluster/pool.js';
import { OWNER } from '../../../runtime/cluster/providers/dockerContainer.js';
import { ownerLabel, self } from '../../../runtime/cluster/providers/dockerHosts.js';
import type { OsworldOptions } from '../../../runtime/cluster/providers/osworld/access.js';
import { OsworldProvider } from '../../../runtime/cluster/providers/osworld/provider.js';
import { parseRunFile } from '../../../runtime/config/index.js';
import { tar } from '../../../runtime/files/tar.js';
import type { Desktop, DesktopSpec } from '../../../runtime/cluster/types.js';
import { engineHere } from '../../helpers/cluster/engine.js';
import { nextEvent } from '../../helpers/cluster/desktops.js';

const engine = await engineHere();
if (!engine) console.log('skipped: OSWorld’s virtual machine (no Docker engine answers here)');
const spec: DesktopSpec = { screen: { width: 640, height: 400 }, memoryMb: 512, pids: 120 };
const IMAGE = 'dart-studio/test-osworld-machine';

/**
 * OSWorld's own image and its 24 GB disk are not at hand here: a container stands in that insists on being started as
 * OSWorld starts its own (variables, volume, port).
 */
describe.skipIf(!engine)('OSWorld’s virtual machine in Docker', () => {
  const docker = connectEngine(),
    providers: OsworldProvider[] = [];
  let dir: string, disk: string, broken: string;
  const mine = async (): Promise<string[]> =>
      (await docker.listContainers({ all: true, filters: { label: [`${OWNER}=${ownerLabel(self())}`] } })).map(
        (c) => c.Id,
      ),
    provider = (o: Partial<OsworldOptions> = {}, of = { disk, image: IMAGE }): OsworldProvider => {
      const p = new OsworldProvider(
        { ...parseRunFile({}).desktops.osworld, ramGb: 1, startSeconds: 60, spares: 0, ...o },
        of,
      );
      providers.push(p);
      return p;
    };
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'dart-machine-'));
    [disk, broken] = [join(dir, 'Ubuntu.qcow2'), join(dir, 'broken.qcow2')];
    await writeFile(disk, 'a disk');
    await writeFile(broken, 'broken');
    const base = await ensureImage(docker),
      file = [
        `FROM ${base}`,
        'USER root',
        'COPY machine.py /machine.py',
        'ENTRYPOINT ["python3", "-u", "/machine.py"]',
      ],
      stream = await docker.buildImage(
        Readable.from([
          tar([
            { path: 'Dockerfile', data: Buffer.from(file.join('\n')) },
            { path: 'machine.py', data: await readFile('test/helpers/osworld/machine.py') },
          ]),
        ]) as NodeJS.ReadableStream,
        { t: IMAGE },
      );
    await new Promise<void>((resolve, reject) => {
      docker.modem.followProgress(stream, (e) => (e ? reject(e) : resolve()));
    });
  });
  afterEach(async () => {
    for (const p of providers.splice(0)) await p.dispose();
    expect(await mine()).toEqual([]);
  });
  afterAll(async () => {
    await rm(dir, { recursive: true, force: true });
  });
  const draw = (d: Desktop): Promise<unknown> => d.exec(['sh', '-c', 'echo x >/tmp/screen']);

  it('is started as OSWorld starts it, on ports of this machine alone, and gone afterwards', async () => {
    const p = provider();
    expect(await p.status()).toMatchObject({ ok: true });
    const d = await p.create(spec),
      [id] = await mine(),
      c = await docker.getContainer(id!).inspect(),
      bound = Object.values(c.NetworkSettings.Ports).flatMap((b) => (b as { HostIp: string }[] | null) ?? []);
    expect(bound.map((b) => b.HostIp)).toEqual(['127.0.0.1', '127.0.0.1', '127.0.0.1', '127.0.0.1']);
    expect(c.Mounts[0]).toMatchObject({ Source: disk, Destination: '/System.qcow2', RW: false });
    expect((await d.screenshot!()).width).toBe(640);
  });
  it('is another one after every rollout, and a spare stands ready for the next', async () => {
    const p = provider({ spares: 1 }),
      pool = createPool({ provider: p, spec, size: 1 }),
      signal = new AbortController().signal;
    try {
      const seen = new Set<string>();
      let first: string | undefined;
      for (let i = 0; i < 3; i++) {
        const l = await pool.lease({ signal });
        seen.add(l.desktop.id);
        const look = async (): Promise<string> => (await l.desktop.observe()).data.toString('hex', 0, 8);
        first ??= await look();
        expect(await look()).toBe(first);
        await draw(l.desktop);
        expect(await look()).not.toBe(first);
        l.release();
      }
      expect(seen.size).toBe(3);
    } finally {
      await pool.close();
    }
  });
  it('reports a lost desktop at once when its container is killed', async () => {
    const d = await provider().create(spec),
      lost = nextEvent(d, (e) => e.type === 'lost'),
      [id] = await mine();
    await docker.getContainer(id!).kill();
    expect(await lost).toMatchObject({ error: { kind: 'desktop.lost' } });
    await expect(d.observe()).rejects.toMatchObject({ kind: 'desktop.lost' });
  });
  it('that does not come up is told with the end of its log, and an image or a disk that is missing by name', async () => {
    const failed = provider({}, { disk: broken, image: IMAGE });
    await expect(failed.create(spec)).rejects.toMatchObject({
      kind: 'desktop.start',
      error: { details: { log: 'qemu: could not open disk image' } },
    });
    await expect(provider({}, { disk, image: 'no/such-image' }).create(spec)).rejects.toMatchObject({
      kind: 'desktop.image',
      error: { remedy: 'Pull it: docker pull no/such-image' },
    });
    await expect(provider({}, { disk: '/no/such.qcow2', image: IMAGE }).create(spec)).rejects.toMatchObject({
      kind: 'desktop.unavailable',
    });
    expect((await provider({}, { disk: undefined as never, image: IMAGE }).status()).problem?.remedy).toContain(
      'a run file cannot',
    );
  });
  it('whose start is cancelled leaves nothing', async () => {
    const p = provider(),
      stop = new AbortController(),
      starting = p.create(spec, stop.signal);
    await expect.poll(mine).toHaveLength(1);
    stop.abort();
    await expect(starting).rejects.toMatchObject({ kind: 'cancelled' });
    expect(await mine()).toEqual([]);
  });
  it('of a runtime that was killed is removed by the next', async () => {
    const dead = { ...self(), pid: 1, started: '0' },
      c = await docker.createContainer({
        Image: IMAGE,
        Labels: { app: 'dart-studio', 'dart-studio.role': 'desktop', [OWNER]: ownerLabel(dead) },
      });
    expect(await provider().reap()).toBeGreaterThanOrEqual(1);
    await expect(c.inspect()).rejects.toMatchObject({ statusCode: 404 });
  });
});
