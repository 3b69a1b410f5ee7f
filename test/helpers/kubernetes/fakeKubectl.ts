import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface FakeCluster {
  readonly contexts: readonly string[];
  /** Names of running pods. */
  readonly pods: readonly string[];
  /** Storage folder of the daemon that stands for the one in each of them. */
  readonly storage: string;
  /** What every call fails with. */
  readonly fault?: string;
}
export interface FakeKubectl {
  readonly program: string;
  become(c: Partial<FakeCluster>): void;
  /** Every call so far. */
  asked(): readonly { readonly pid: number; readonly asked: readonly string[] }[];
  /** The processes that forward, or did. */
  forwards(): readonly number[];
}
/** Puts the program of kubectl.cjs into a folder, as `kubectl`. */
export function fakeKubectl(dir: string, cluster: FakeCluster): FakeKubectl {
  const program = join(dir, 'kubectl');
  let now = cluster;
  const become = (c: Partial<FakeCluster>): void => {
    now = { ...now, ...c };
    writeFileSync(join(dir, 'cluster.json'), JSON.stringify(now));
  };
  become({});
  writeFileSync(program, `#!${process.execPath}\n${readFileSync(join(import.meta.dirname, 'kubectl.cjs'), 'utf8')}`);
  chmodSync(program, 0o755);
  const asked = (): { pid: number; asked: string[] }[] => {
    const file = join(dir, 'asked.jsonl');
    return existsSync(file)
      ? readFileSync(file, 'utf8')
          .split('\n')
          .filter((l) => l !== '')
          .map((l) => JSON.parse(l) as { pid: number; asked: string[] })
      : [];
  };
  return {
    program,
    become,
    asked,
    forwards: () => asked().flatMap((x) => (x.asked[0] === 'port-forward' ? [x.pid] : [])),
  };
}
