import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { openAccess } from '../../../runtime/cluster/providers/kubernetes/access.js';
import { Api } from '../../../runtime/cluster/providers/kubernetes/api.js';
import { KubernetesProvider } from '../../../runtime/cluster/providers/kubernetes/provider.js';
import type { DesktopSpec } from '../../../runtime/cluster/types.js';
import { parseRunFile, type RunConfig, type RunFile } from '../../../runtime/config/index.js';
import { toRunError } from '../../../runtime/domain/index.js';

/** Options, the cluster, and what was found: shared by all parts. test/kubernetes/README.md says what each option is. */
export const { values: arg } = parseArgs({
  options: {
    context: { type: 'string' },
    image: { type: 'string' },
    kill: { type: 'string' },
    back: { type: 'string' },
    kubelet: { type: 'string' },
    'image-away': { type: 'string' },
    'image-back': { type: 'string' },
    desktops: { type: 'string', default: '8' },
    quickstart: { type: 'boolean', default: false },
    beside: { type: 'string' },
    minutes: { type: 'string' },
    job: { type: 'string' },
    volume: { type: 'string' },
    only: { type: 'string' },
    json: { type: 'string' },
  },
});
export const spec: DesktopSpec = { screen: { width: 1280, height: 720 }, memoryMb: 512, pids: 128, cpus: 1 };
export const namespace = `dart-test-${process.pid}`,
  count = Number(arg.desktops);
const access = await openAccess({ context: arg.context, plugins: [] });
export const api = new Api(access);

export type Options = NonNullable<NonNullable<RunFile['desktops']>['kubernetes']>;
/** The desktops' options in a run file: of this test's namespace, from the image that the nodes have. */
export const optionsOf = (o: Options = {}): Options => ({
  namespace,
  spares: 0,
  ...(arg.image ? { image: arg.image } : {}),
  ...o,
});
export const desktopsOf = (o: Options = {}): RunConfig['desktops'] =>
  parseRunFile({}, { desktops: { provider: 'kubernetes', count, kubernetes: optionsOf(o) } }).desktops;
/** For commands of the runtime: the context that they may use. */
export const environment: Readonly<Record<string, string>> =
  arg.context === undefined ? {} : { DART_STUDIO_KUBE_CONTEXT: arg.context };

export const open: KubernetesProvider[] = [];
export const provider = (o: Options = {}): KubernetesProvider => {
  const p = new KubernetesProvider({ config: desktopsOf(o).kubernetes, access: () => Promise.resolve(access) });
  open.push(p);
  return p;
};

export const found: Record<string, unknown> = {};
export const note = (what: string, value: unknown): void => {
  found[what] = value;
  process.stdout.write(`${what}: ${JSON.stringify(value)}\n`);
};
export const load = (): number[] => loadavg().map((x) => Math.round(x * 10) / 10);

export const timed = async <T>(f: () => Promise<T>): Promise<{ ms: number; value: T }> => {
  const began = performance.now(),
    value = await f();
  return { ms: Math.round((performance.now() - began) * 10) / 10, value };
};
export const summary = (ms: readonly number[]): { p50: number; p95: number; n: number } => {
  const s = [...ms].sort((a, b) => a - b),
    at = (q: number): number => s[Math.min(s.length - 1, Math.floor(q * s.length))]!;
  return { p50: at(0.5), p95: at(0.95), n: s.length };
};
export const failure = async (p: Promise<unknown>): Promise<object> =>
  p.then(
    () => ({ failed: false }),
    (e: unknown) => {
      const { kind, message, remedy } = toRunError(e);
      return { kind, message, remedy };
    },
  );
