import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** One archive: a line of sources.list, without its type. */
export interface AptSource {
  readonly uri: string;
  readonly suite: string;
  readonly components: readonly string[];
  /** Path of the key the machine trusts it by. */
  readonly signedBy?: string;
  readonly trusted?: boolean;
}

const RELEASE = 'bookworm';
const SUITES = [RELEASE, `${RELEASE}-updates`, `${RELEASE}-security`];
export const DEBIAN_KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

export const DEFAULT_SOURCES: readonly AptSource[] = [
  { uri: 'http://deb.debian.org/debian', suite: RELEASE, components: ['main'] },
  { uri: 'http://deb.debian.org/debian', suite: `${RELEASE}-updates`, components: ['main'] },
  { uri: 'http://deb.debian.org/debian-security', suite: `${RELEASE}-security`, components: ['main'] },
];

/**
 * Debian's own archives of our release among the machine's sources; third-party ones (other suites, no `main`) are left
 * out.
 */
export function pickSources(all: readonly AptSource[]): AptSource[] {
  const seen = new Set<string>();
  const picked = all
    .filter((s) => {
      const key = `${s.uri.replace(/\/+$/, '')} ${s.suite}`;
      if (!SUITES.includes(s.suite) || !s.components.includes('main') || seen.has(key)) return false;
      seen.add(key);
      return true;
    })
    .map((s) => ({ ...s, components: ['main'] }));
  // Updates without the release itself cannot install anything.
  return picked.some((s) => s.suite === RELEASE) ? picked : [...DEFAULT_SOURCES];
}

/** The one-line format (`deb [options] URI suite component...`). */
export function parseSourcesList(text: string): AptSource[] {
  const out: AptSource[] = [];
  for (const raw of text.split('\n')) {
    const m = /^deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s*(.*)$/.exec(raw.replace(/#.*/, '').trim());
    if (!m) continue;
    const options = new Map(
      (m[1] ?? '')
        .split(/\s+/)
        .filter(Boolean)
        .map((o): [string, string] => {
          const i = o.indexOf('=');
          return [o.slice(0, i), o.slice(i + 1)];
        }),
    );
    out.push(
      source(m[2]!, m[3]!, m[4]!.split(/\s+/).filter(Boolean), options.get('signed-by'), options.get('trusted')),
    );
  }
  return out;
}

/** The deb822 format (`Types: deb`, `URIs:`, `Suites:`, ... in paragraphs). */
export function parseDeb822(text: string): AptSource[] {
  const out: AptSource[] = [];
  for (const paragraph of text
    .split('\n')
    .filter((l) => !l.startsWith('#'))
    .join('\n')
    .split(/\n\s*\n/)) {
    const fields = new Map<string, string>();
    let last = '';
    for (const line of paragraph.split('\n')) {
      const m = /^([A-Za-z-]+):\s*(.*)$/.exec(line);
      if (m) fields.set((last = m[1]!.toLowerCase()), m[2]!.trim());
      else if (/^\s/.test(line) && last) fields.set(last, `${fields.get(last)!} ${line.trim()}`);
    }
    const words = (k: string): string[] => (fields.get(k) ?? '').split(/\s+/).filter(Boolean);
    if (!words('types').includes('deb') || fields.get('enabled')?.toLowerCase() === 'no') continue;
    for (const uri of words('uris'))
      for (const suite of words('suites'))
        out.push(source(uri, suite, words('components'), fields.get('signed-by'), fields.get('trusted')));
  }
  return out;
}

function source(uri: string, suite: string, components: string[], signedBy?: string, trusted?: string): AptSource {
  // A key written into the sources file itself (deb822 allows it) is not a path; the tools then use their own Debian
  // key.
  return {
    uri,
    suite,
    components,
    signedBy: signedBy?.startsWith('/') ? signedBy : undefined,
    trusted: trusted === 'yes' ? true : undefined,
  };
}

export async function machineSources(etc = '/etc/apt'): Promise<AptSource[]> {
  const all: AptSource[] = [];
  const read = async (f: string): Promise<string> => {
    try {
      return await readFile(f, 'utf8');
    } catch {
      return '';
    }
  };
  all.push(...parseSourcesList(await read(join(etc, 'sources.list'))));
  let names: string[] = [];
  try {
    names = (await readdir(join(etc, 'sources.list.d'))).sort();
  } catch {
    /* not a Debian machine */
  }
  for (const n of names) {
    const text = await read(join(etc, 'sources.list.d', n));
    if (n.endsWith('.list')) all.push(...parseSourcesList(text));
    else if (n.endsWith('.sources')) all.push(...parseDeb822(text));
  }
  return pickSources(all);
}

/** A `deb` line; `withKey` names the key file (mmdebstrap reads it on this machine, an image has none but Debian's). */
export function debLine(s: AptSource, withKey: boolean): string {
  const options = [
    ...(withKey && s.signedBy && existsSync(s.signedBy) ? [`signed-by=${s.signedBy}`] : []),
    ...(s.trusted ? ['trusted=yes'] : []),
  ];
  return `deb ${options.length > 0 ? `[${options.join(' ')}] ` : ''}${s.uri} ${s.suite} ${s.components.join(' ')}`;
}

/** Settings of how this machine reaches its archives; the rest of its apt configuration does not matter to a build. */
const KEPT =
  /^Acquire::((http|https)::Proxy|Check-Valid-Until|Check-Date|Retries|ForceIPv4|https::CaInfo|https::Verify-Peer)\b/i;

/** `Key "value";` lines of `apt-config dump` that a build must keep. */
export function keepAptConf(dump: string): string[] {
  return dump
    .split('\n')
    .map((l) => l.trim())
    .filter((l) => KEPT.test(l) && !/""\s*;$/.test(l));
}

export async function machineAptConf(): Promise<string[]> {
  try {
    return keepAptConf((await promisify(execFile)('apt-config', ['dump'], { maxBuffer: 4 << 20 })).stdout);
  } catch {
    return [];
  }
}

/** Certificates that this machine trusts: a slim base has none, and a proxy that intercepts TLS has its own. */
export const caBundle = (): string => process.env['SSL_CERT_FILE'] ?? '/etc/ssl/certs/ca-certificates.crt';

const LOOPBACK = /127\.0\.0\.1|localhost|\[::1\]/;

/**
 * Settings that work in a container build: no proxy on our loopback, no credentials (an image keeps its layers), no
 * path of this machine.
 */
export function forContainer(
  sources: readonly AptSource[],
  conf: readonly string[],
): { sources: AptSource[]; conf: string[] } {
  const usable = sources.filter(
    (s) =>
      /^https?:/.test(s.uri) &&
      !/\/\/[^/]*@/.test(s.uri) &&
      !LOOPBACK.test(s.uri) &&
      (!s.signedBy || s.signedBy === DEBIAN_KEYRING),
  );
  return {
    sources: pickSources(usable),
    conf: conf.filter((l) => !/CaInfo/i.test(l) && !LOOPBACK.test(l) && !/\/\/[^/"]*@/.test(l)),
  };
}

/**
 * Reads apt's and dpkg's output: how much of an installation is done. Downloading, unpacking and setting up count a
 * third each. `shares`: the part of the whole that each round of apt takes (mmdebstrap installs the essential packages,
 * then ours).
 */
export class AptProgress {
  readonly #shares: readonly number[];
  #round = -1;
  #total = 0;
  #got = 0;
  #unpacked = 0;
  #set = 0;
  constructor(shares: readonly number[] = [1]) {
    this.#shares = shares;
  }
  /** Takes one line; returns the fraction done (0 to 1) when the line changed it. */
  line(l: string): number | undefined {
    const n = /(\d+) newly installed/.exec(l);
    if (n) {
      this.#round = Math.min(this.#round + 1, this.#shares.length - 1);
      this.#total = Number(n[1]);
      this.#got = this.#unpacked = this.#set = 0;
      return this.#fraction();
    }
    if (this.#total === 0) return undefined;
    if (/^Get:\d+ /.test(l)) this.#got++;
    else if (/^Unpacking /.test(l)) this.#unpacked++;
    else if (/^Setting up /.test(l)) this.#set++;
    else return undefined;
    return this.#fraction();
  }
  #fraction(): number {
    const part = (x: number): number => Math.min(1, x / Math.max(1, this.#total)) / 3;
    const before = this.#shares.slice(0, this.#round).reduce((a, b) => a + b, 0);
    return before + this.#shares[this.#round]! * (part(this.#got) + part(this.#unpacked) + part(this.#set));
  }
}
