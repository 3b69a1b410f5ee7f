import { Readable } from 'node:stream';
import { tarStream, type TarFile } from '../../files/tar.js';
import { debChunks, type ExtraParts } from '../imageBuild/extra.js';

/**
 * Docker's build context for a layer of the user's own on the finished image `base`. Like the images themselves it ends
 * as one layer, in which nothing of this machine's network is left.
 */
export function extraContext(extra: ExtraParts, base: string, network: readonly TarFile[]): Readable {
  const has = (start: string): boolean => extra.files.some((f) => f.path.startsWith(start));
  const dockerfile = [
    `FROM ${base} AS system`,
    'COPY . /tmp/dart-build/',
    `RUN ${installed(extra.debs.length > 0, has('packages.txt'), has('setup.sh')).join(' \\\n  && ')}`,
    'FROM scratch',
    'COPY --from=system / /',
    'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    ...['etc', 'opt'].flatMap((d) => (has(`overlay/${d}/`) ? [`COPY overlay/${d}/ /${d}/`] : [])),
    // Whatever the layer did to the agent, it is ours.
    `COPY --from=${base} /opt/dart/ /opt/dart/`,
    'CMD ["/usr/bin/python3", "-S", "-E", "/opt/dart/agent.py"]',
  ].join('\n');
  return Readable.from(
    tarStream(
      [...extra.files, ...network, { path: 'Dockerfile', data: Buffer.from(`${dockerfile}\n`) }],
      extra.debs.map((d) => ({
        path: `debs/${d.name}`,
        bytes: d.bytes,
        chunks: () => debChunks(extra, d),
      })),
    ),
  );
}

/** Commands of the build, in its order. */
const installed = (debs: boolean, packages: boolean, setup: boolean): string[] => [
  'cd /tmp/dart-build',
  ...(debs || packages
    ? [
        'if [ -s apt.list ]; then cp apt.list /etc/apt/sources.list; fi',
        'if [ -s apt.conf ]; then cp apt.conf /etc/apt/apt.conf.d/99dart-build; fi',
        'mkdir -p /var/cache/apt/archives/partial /var/lib/apt/lists/partial',
        'apt-get update',
        `DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ${[
          ...(packages ? ["$(sed 's/#.*//' packages.txt)"] : []),
          ...(debs ? ['./debs/*.deb'] : []),
        ].join(' ')}`,
        'rm -rf /etc/apt/apt.conf.d/99dart-build /var/lib/apt/lists/*',
        'apt-get clean',
      ]
    : []),
  ...(setup ? ['cd / && sh /tmp/dart-build/setup.sh'] : []),
  'cd / && rm -rf /tmp/dart-build /var/log/*',
];
