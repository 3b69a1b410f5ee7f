import { describe, expect, it } from 'vitest';
import {
  AptProgress,
  debLine,
  DEFAULT_SOURCES,
  forContainer,
  keepAptConf,
  parseDeb822,
  parseSourcesList,
  pickSources,
} from '../../../runtime/cluster/imageBuild/apt.js';

describe('apt sources of this machine', () => {
  it("reads one-line and deb822 files, and keeps Debian's own archives of our release only", () => {
    const list = parseSourcesList(
      [
        '# deb http://old.example/debian bookworm main',
        'deb [signed-by=/usr/share/keyrings/m.gpg arch=amd64] http://mirror.example/debian bookworm main contrib',
        'deb-src http://mirror.example/debian bookworm main',
        'deb https://download.docker.com/linux/debian bookworm stable',
        'deb https://deb.nodesource.com/node_20.x nodistro main',
      ].join('\n'),
    );
    const deb = parseDeb822(
      'Types: deb\n# a comment\nURIs: http://mirror.example/debian/ http://second.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\nSigned-By: /k.gpg\n\nTypes: deb\nURIs: http://off.example/\nSuites: bookworm\nComponents: main\nEnabled: no\n\nTypes: deb-src\nURIs: http://src.example/\nSuites: bookworm\nComponents: main\n',
    );
    expect(list).toHaveLength(3);
    const picked = pickSources([...list, ...deb]);
    expect(picked.map((s) => `${s.uri} ${s.suite} ${s.components.join(',')}`)).toEqual([
      'http://mirror.example/debian bookworm main',
      'http://mirror.example/debian/ bookworm-updates main',
      'http://second.example/debian bookworm main',
      'http://second.example/debian bookworm-updates main',
    ]);
    expect(picked[0]!.signedBy).toBe('/usr/share/keyrings/m.gpg');
  });

  it("falls back to Debian's archives where the machine has another release or none", () => {
    expect(pickSources([])).toEqual(DEFAULT_SOURCES);
    expect(pickSources([{ uri: 'http://archive.ubuntu.com/ubuntu', suite: 'noble', components: ['main'] }])).toEqual(
      DEFAULT_SOURCES,
    );
    expect(
      pickSources([{ uri: 'http://deb.debian.org/debian-security', suite: 'bookworm-security', components: ['main'] }]),
    ).toEqual(DEFAULT_SOURCES);
  });

  it('reads multi-line deb822 fields and ignores a key written into the file', () => {
    const [s] = parseDeb822(
      'Types: deb\nURIs: http://a/\nSuites:\n bookworm\nComponents: main\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n',
    );
    expect(s).toEqual({ uri: 'http://a/', suite: 'bookworm', components: ['main'] });
    expect(debLine({ ...s!, trusted: true }, true)).toBe('deb [trusted=yes] http://a/ bookworm main');
  });

  it("keeps of apt's configuration only how archives are reached", () => {
    const dump =
      'APT::Architecture "amd64";\nAcquire::Check-Valid-Until "false";\nAcquire::http::Proxy "http://proxy:3142";\nAcquire::https::Proxy "";\nDPkg::Pre-Install-Pkgs:: "/usr/sbin/x";\nAcquire::Languages "none";';
    expect(keepAptConf(dump)).toEqual([
      'Acquire::Check-Valid-Until "false";',
      'Acquire::http::Proxy "http://proxy:3142";',
    ]);
  });

  it('gives a build in a container nothing that only works, or only belongs, on this machine', () => {
    const ok = { uri: 'http://m.example/debian', suite: 'bookworm', components: ['main'] };
    const r = forContainer(
      [
        ok,
        { ...ok, uri: 'http://user:secret@m.example/debian' },
        { ...ok, uri: 'http://127.0.0.1:9999/debian' },
        { ...ok, uri: 'file:///srv/debian' },
        { ...ok, uri: 'http://n.example/', signedBy: '/etc/k.gpg' },
      ],
      [
        'Acquire::http::Proxy "http://localhost:3142";',
        'Acquire::http::Proxy "http://u:p@proxy:1";',
        'Acquire::https::CaInfo "/etc/ca.pem";',
        'Acquire::Check-Date "false";',
      ],
    );
    expect(r).toEqual({ sources: [ok], conf: ['Acquire::Check-Date "false";'] });
  });
});

describe("progress from apt's output", () => {
  it('goes from 0 to 1 over two rounds and never back', () => {
    const p = new AptProgress([0.25, 0.75]);
    expect(p.line('Reading package lists...')).toBeUndefined();
    const seen: number[] = [];
    for (const n of [2, 3]) {
      seen.push(p.line(`0 upgraded, ${n} newly installed, 0 to remove and 0 not upgraded.`)!);
      for (const w of ['Get:1 http://x', 'Unpacking a (1) ...', 'Setting up a (1) ...'])
        for (let i = 0; i < n; i++) seen.push(p.line(w)!);
    }
    expect(seen[0]).toBe(0);
    expect(seen[7]).toBeCloseTo(0.25);
    expect(seen.at(-1)).toBeCloseTo(1);
    expect([...seen].sort((a, b) => a - b)).toEqual(seen);
    expect(p.line('Setting up one more (1) ...')).toBeLessThanOrEqual(1);
  });
});
