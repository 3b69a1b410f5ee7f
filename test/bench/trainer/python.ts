import { execFileSync, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** Debian's interpreter first: another python3 on the PATH does not see Debian's python3-torch. */
const INTERPRETERS = ['/usr/bin/python3', 'python3'];
const PACKAGES = ['python3-torch', 'libopenblas0'];

const works = (python: string): boolean => {
  try {
    execFileSync(python, ['-c', 'import torch'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};
export const pythonWithTorch = (): string | undefined => INTERPRETERS.find(works);

/** The same, installing PyTorch and a fast BLAS from Debian when root; otherwise the reason why there is none. */
export function needTorch(given?: string): { readonly python: string } | { readonly missing: string } {
  if (given !== undefined && !works(given)) return { missing: `${given} cannot import torch` };
  const have = given ?? pythonWithTorch();
  if (have) return { python: have };
  if (process.getuid?.() !== 0)
    return { missing: `PyTorch is not installed and this is not root; apt-get install ${PACKAGES.join(' ')}` };
  try {
    console.log(`Installing ${PACKAGES.join(' and ')} for the comparison ...`);
    execFileSync('apt-get', ['install', '-y', '--no-install-recommends', ...PACKAGES], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    });
  } catch (e) {
    return {
      missing: `apt-get install ${PACKAGES.join(' ')} failed: ${
        String((e as { stderr?: Buffer }).stderr ?? e)
          .trim()
          .split('\n')
          .at(-1) ?? ''
      }`,
    };
  }
  const python = pythonWithTorch();
  return python ? { python } : { missing: 'python3-torch is installed but cannot be imported' };
}

export interface TorchPeer {
  readonly version: string;
  update(): Promise<number>;
  forward(): Promise<number>;
  close(): void;
}

/** Starts torch_peer.py on a written problem; each call runs one pass there and answers its milliseconds. */
export async function startPeer(python: string, dir: string, threads: number): Promise<TorchPeer> {
  const child = spawn(python, ['test/bench/trainer/torch_peer.py', dir, 'bench', String(threads)], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, OMP_NUM_THREADS: String(threads), OPENBLAS_NUM_THREADS: String(threads) },
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async (): Promise<string> => {
    const l = await lines.next();
    if (l.done) throw new Error('torch_peer.py ended early');
    return l.value;
  };
  const ready = await line();
  const ask = async (what: string): Promise<number> => {
    child.stdin.write(`${what}\n`);
    return Number(await line());
  };
  return {
    version: ready.replace('ready ', ''),
    update: () => ask('update'),
    forward: () => ask('forward'),
    close: () => {
      child.stdin.end();
    },
  };
}
