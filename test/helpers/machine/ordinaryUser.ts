import { spawn } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { rootfsPath } from '../../../runtime/cluster/imageBuild.js';

/** Far from real users, and from the uids that root's sandboxes get. It needs no entry in /etc/passwd. */
const UID = 1_400_000_000;

export interface Done {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs commands as an ordinary user in a view of this checkout: the folder itself, Node.js and the root file system that
 * root built are mounted where that user can reach them, in a mount namespace that ends with the command. Nothing is
 * copied, and what the user writes goes into `home`, which is its own.
 */
export class OrdinaryUser {
  readonly home: string;
  readonly #dir: string;
  readonly #rootfs: string;

  private constructor(dir: string, rootfs: string) {
    this.#dir = dir;
    this.home = join(dir, 'home');
    this.#rootfs = rootfs;
  }

  static async create(): Promise<OrdinaryUser> {
    const rootfs = await rootfsPath();
    if (!rootfs) throw new Error('the root file system of the desktop is not built');
    const user = new OrdinaryUser(mkdtempSync(join(tmpdir(), 'dart-user-')), rootfs);
    chmodSync(user.#dir, 0o755);
    for (const d of ['checkout', `cache/dart-studio/desktop/${user.#built}`, 'bin', 'home'])
      mkdirSync(join(user.#dir, d), { recursive: true });
    writeFileSync(join(user.#dir, 'bin/node'), '');
    chownSync(user.home, UID, UID);
    return user;
  }

  /** The folder of the finished build, by its recipe's hash. */
  get #built(): string {
    return dirname(this.#rootfs).split('/').at(-1)!;
  }

  /** A file in `home` that belongs to the user. */
  write(name: string, content: string): string {
    const file = join(this.home, name);
    writeFileSync(file, content);
    chownSync(file, UID, UID);
    return file;
  }

  start(...command: string[]): { readonly pid: number; readonly done: Promise<Done>; end(): void } {
    const d = this.#dir;
    const script = [
      'mount --rbind "$1" "$2/checkout"',
      `mount --rbind "$3" "$2/cache/dart-studio/desktop/${this.#built}"`,
      'mount --bind "$4" "$2/bin/node"',
      'cd "$2/checkout"',
      'shift 4',
      'exec "$@"',
    ].join(' && ');
    const child = spawn(
      'unshare',
      [
        ...['--mount', '--propagation', 'private', '--', 'sh', '-c', script, 'sh'],
        ...[resolve('.'), d, dirname(this.#rootfs), process.execPath],
        ...['setpriv', '--reuid', String(UID), '--regid', String(UID), '--clear-groups', '--', ...command],
      ],
      {
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          PATH: `${d}/bin:${process.env['PATH'] ?? '/usr/bin:/bin'}`,
          HOME: this.home,
          TMPDIR: this.home,
          DART_STUDIO_CACHE: join(d, 'cache'),
        },
      },
    );
    let stdout = '',
      stderr = '';
    child.stdout.on('data', (b: Buffer) => {
      stdout += b.toString();
    });
    child.stderr.on('data', (b: Buffer) => {
      stderr += b.toString();
    });
    return {
      pid: child.pid!,
      done: new Promise((done, fail) => {
        child.once('error', fail);
        child.once('close', (code) => done({ code, stdout, stderr }));
      }),
      end: () => {
        try {
          process.kill(-child.pid!, 'SIGKILL');
        } catch {
          /* it has ended */
        }
      },
    };
  }

  remove(): void {
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
