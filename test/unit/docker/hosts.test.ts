import { describe, expect, it } from 'vitest';
import type { StudioError } from '../../../runtime/domain/index.js';
import { containerOptions } from '../../../runtime/cluster/providers/dockerContainer.js';
import {
  defaultCapacity,
  isOrphan,
  isRemote,
  ownerLabel,
  parseHost,
  parseOwner,
  place,
  self,
  startTime,
} from '../../../runtime/cluster/providers/dockerHosts.js';
import { engineError } from '../../../runtime/cluster/providers/dockerImage.js';

describe('addresses of engines', () => {
  it('reads what DOCKER_HOST may hold', () => {
    expect(parseHost('unix:///run/user/1000/docker.sock', {})).toEqual({ socketPath: '/run/user/1000/docker.sock' });
    expect(parseHost('/var/run/docker.sock', {})).toEqual({ socketPath: '/var/run/docker.sock' });
    expect(parseHost('tcp://10.0.0.5:2375', {})).toEqual({ protocol: 'http', host: '10.0.0.5', port: 2375 });
    expect(parseHost('ssh://me@box', {})).toEqual({ protocol: 'ssh', host: 'box', port: 22, username: 'me' });
    const tls = parseHost('tcp://box', { DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: '/certs' }, (f) => Buffer.from(f));
    expect(tls).toEqual({
      protocol: 'https',
      host: 'box',
      port: 2376,
      ca: Buffer.from('/certs/ca.pem'),
      cert: Buffer.from('/certs/cert.pem'),
      key: Buffer.from('/certs/key.pem'),
    });
  });
  it.each(['', 'box', 'ftp://box', 'tcp://'])('says what is wrong with %j', (h) => {
    try {
      parseHost(h, {});
      expect.unreachable();
    } catch (e) {
      expect((e as StudioError).kind).toBe('config.invalid');
      expect((e as StudioError).error.remedy).toMatch(/unix:\/\//);
    }
  });
  it('knows which are over a network', () => {
    expect(
      [
        undefined,
        parseHost('/s', {}),
        parseHost('tcp://127.0.0.1:1', {}),
        parseHost('tcp://box:1', {}),
        parseHost('ssh://box', {}),
      ].map(isRemote),
    ).toEqual([false, false, false, true, true]);
  });
});

describe('placing', () => {
  it('takes the engine with the most free places, the first of equals, and none that is down or full', () => {
    const h = (capacity: number, used: number, down = false): { capacity: number; used: number; down: boolean } => ({
      capacity,
      used,
      down,
    });
    expect(place([h(4, 3), h(8, 6), h(2, 0)])).toBe(1);
    expect(place([h(4, 0, true), h(1, 0)])).toBe(1);
    expect(place([h(2, 2), h(0, 0), h(3, 4)])).toBeUndefined();
    expect(place([])).toBeUndefined();
  });
  it('bounds the default capacity by memory and cores', () => {
    expect(defaultCapacity({ memoryBytes: 24e9, cores: 2 })).toBe(32);
    expect(defaultCapacity({ memoryBytes: 1.2e9, cores: 64 })).toBe(8);
    expect(defaultCapacity({ memoryBytes: 1e6, cores: 1 })).toBe(1);
  });
});

describe('whose container', () => {
  const me = self();
  it('a label survives the way into the engine and back', () => {
    expect(parseOwner(ownerLabel(me))).toEqual(me);
  });
  it('is an orphan when its process is gone, its pid was reused, or the machine was restarted', () => {
    expect(isOrphan(me, me)).toBe(false);
    expect(isOrphan({ ...me, started: '1' }, me)).toBe(true);
    expect(isOrphan({ ...me, pid: 2 ** 22 + 1 }, me)).toBe(true);
    expect(isOrphan({ ...me, boot: 'earlier' }, me)).toBe(true);
  });
  it('is never ours to remove when another machine or an unknown maker made it', () => {
    expect(isOrphan({ ...me, machine: 'other', boot: 'x' }, me)).toBe(false);
    expect(isOrphan(undefined, me)).toBe(false);
    expect(parseOwner('')).toBeUndefined();
    expect(parseOwner('a/b/notanumber/1')).toBeUndefined();
  });
  it('the start time is that of the process, and nothing for one that is not there', () => {
    expect(startTime(process.pid)).toMatch(process.platform === 'linux' ? /^\d+$/ : /^$/);
    expect(startTime(2 ** 22 + 1)).toBe('');
  });
});

describe('container', () => {
  it("is closed: no network, read-only, no capabilities but the agent's, limits set", () => {
    const c = containerOptions(
      'img',
      { screen: { width: 640, height: 400 }, memoryMb: 300, pids: 99, cpus: 0.5, labels: { app: 'mine', x: 'y' } },
      { name: 'n', owner: 'o', run: 'r' },
    );
    expect(c.HostConfig).toMatchObject({
      NetworkMode: 'none',
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      Memory: 300 << 20,
      MemorySwap: 300 << 20,
      PidsLimit: 99,
      NanoCpus: 5e8,
      LogConfig: { Type: 'none' },
    });
    expect(c.HostConfig!.Binds).toBeUndefined();
    const open = containerOptions(
      'img',
      { screen: { width: 640, height: 400 }, memoryMb: 300, pids: 99, network: 'internet' },
      { name: 'n', owner: 'o' },
    );
    expect(open.HostConfig).toMatchObject({ NetworkMode: 'bridge', ReadonlyRootfs: true, CapDrop: ['ALL'] });
    expect(c.HostConfig!.SecurityOpt).toEqual(['no-new-privileges']);
    expect(open.HostConfig!.SecurityOpt).toEqual(['no-new-privileges', expect.stringMatching(/^seccomp={/)]);
    expect(c.Labels).toEqual({
      app: 'dart-studio',
      x: 'y',
      'dart-studio.role': 'desktop',
      'dart-studio.owner': 'o',
      'dart-studio.run': 'r',
    });
  });
});

describe('errors of an engine', () => {
  it.each([
    [{ code: 'ENOENT' }, 'desktop.unavailable', /systemctl start docker/],
    [{ code: 'EACCES' }, 'desktop.unavailable', /group docker/],
    [{ code: 'ETIMEDOUT', message: 't' }, 'desktop.unavailable', /DOCKER_HOST/],
    [{ statusCode: 500, json: { message: 'no space left on device' } }, 'desktop.start', /prune/],
    [{ statusCode: 404, reason: 'no such container', json: { message: 'No such image: x' } }, 'desktop.start', /log/],
  ])('%j', (e, kind, remedy) => {
    const s = engineError(e);
    expect(s.kind).toBe(kind);
    expect(s.error.remedy).toMatch(remedy);
    if ('json' in e) expect(s.message).toContain(e.json!.message);
  });
});
