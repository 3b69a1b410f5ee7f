import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { WebSocketServer, type WebSocket } from 'ws';
import type { ClusterAccess } from '../../../runtime/cluster/providers/kubernetes/access.js';
import type { Pod, PodStatus } from '../../../runtime/cluster/providers/kubernetes/pods.js';

/** The two pipes of a program in a pod. */
export interface Program {
  stdin(b: Buffer): void;
  /** Nothing more comes on its standard input. */
  end(): void;
  /** The channel ended: the program's standard input does, too. */
  cut(): void;
}
/** What runs behind the pods: nothing (faults of starting need none), or containers. */
export interface Backend {
  start(pod: PodObject): Promise<void>;
  stop(name: string): Promise<void>;
  exec(
    name: string,
    command: readonly string[],
    on: { stdout(b: Buffer): void; stderr(b: Buffer): void; exit(code: number): void },
  ): Promise<Program>;
}
export type PodObject = Pod & {
  readonly spec?: {
    readonly containers?: readonly {
      readonly image?: string;
      readonly command?: readonly string[];
      readonly resources?: { readonly limits?: Readonly<Record<string, string>> };
    }[];
    readonly volumes?: readonly { readonly name?: string; readonly emptyDir?: { readonly sizeLimit?: string } }[];
  };
};

const running: PodStatus = {
  phase: 'Running',
  hostIP: '10.0.0.1',
  conditions: [{ type: 'PodScheduled', status: 'True' }],
  containerStatuses: [{ name: 'desktop', ready: true, state: { running: {} } }],
};
/** Status of pods that do not start, as a real cluster (1.34) reported it. */
export const stuck = {
  unschedulable: {
    phase: 'Pending',
    conditions: [
      {
        type: 'PodScheduled',
        status: 'False',
        reason: 'Unschedulable',
        message: '0/1 nodes are available: 1 Insufficient memory. preemption: 0/1 nodes are available.',
      },
    ],
  },
  imageMissing: {
    phase: 'Pending',
    containerStatuses: [
      {
        name: 'desktop',
        ready: false,
        state: {
          waiting: { reason: 'ErrImagePull', message: 'failed to resolve reference "r.example/desk:1": not found' },
        },
      },
    ],
  },
  oldImage: {
    phase: 'Failed',
    containerStatuses: [{ name: 'desktop', state: { terminated: { reason: 'Error', exitCode: 2 } } }],
  },
  creating: {
    phase: 'Pending',
    conditions: [{ type: 'PodScheduled', status: 'True' }],
    containerStatuses: [{ name: 'desktop', state: { waiting: { reason: 'ContainerCreating' } } }],
  },
} satisfies Record<string, PodStatus>;
/** Status of pods that end. */
export const ends = {
  evicted: { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: ephemeral-storage.' },
  oom: {
    phase: 'Failed',
    containerStatuses: [{ name: 'desktop', state: { terminated: { reason: 'OOMKilled', exitCode: 137 } } }],
  },
  nodeLost: { phase: 'Unknown', reason: 'NodeLost', message: 'Node node1 which was running pod is unresponsive' },
  deadline: {
    phase: 'Failed',
    reason: 'DeadlineExceeded',
    message: 'Pod was active on the node longer than the specified deadline',
  },
} satisfies Record<string, PodStatus>;

export interface Faults {
  /** Status that a new pod gets in place of running. */
  start?: PodStatus;
  /** Most pods, as a ResourceQuota has it. */
  quota?: number;
  /** Verbs that are refused: `create pods`, `list pods`, `create pods/exec` … */
  forbidden?: readonly string[];
  /** Calls that are answered 429 first. */
  throttle?: number;
  /** How the next channels are refused, one after another. */
  refuseExec?: { readonly code: number; readonly message: string }[];
  /** ms until a pod runs. */
  startMs?: number;
  /** Just started: every version that it lists is too new to be watched from. */
  lags?: boolean;
  events?: readonly { type: string; reason: string; message: string }[];
}

/**
 * A small server that speaks the part of the Kubernetes API that desktops need, as a real one (1.34) was seen to: pods
 * (create, list, watch with versions and 410, delete), exec over `v5.channel.k8s.io`, events, access reviews.
 */
export class ApiServer {
  faults: Faults = {};
  /** Address of every pod. */
  podIP: string | undefined = '10.244.1.7';
  /** The only one there is. */
  namespace = 'desktops';
  /** Tokens that are accepted; without, any request is. */
  tokens: readonly string[] | undefined;
  readonly calls: string[] = [];
  readonly pods = new Map<string, PodObject>();
  /** Every pod that was asked for, as it was. */
  readonly made: PodObject[] = [];
  readonly #server: Server;
  readonly #exec = new WebSocketServer({
    noServer: true,
    handleProtocols: (p) => (p.has('v5.channel.k8s.io') ? 'v5.channel.k8s.io' : false),
  });
  readonly #sockets = new Set<Socket>();
  readonly #watches = new Set<{ res: ServerResponse; selector: string }>();
  readonly #channels = new Map<string, Set<WebSocket>>();
  readonly #backend: Backend | undefined;
  #version = 100;
  /** Versions before this one are forgotten (410). */
  #oldest = 0;
  #history: { version: number; type: string; pod: PodObject }[] = [];
  #port = 0;

  private constructor(backend: Backend | undefined) {
    this.#backend = backend;
    this.#server = this.#make();
  }

  static async open(backend?: Backend): Promise<ApiServer> {
    const s = new ApiServer(backend);
    await s.#listen(s.#server);
    return s;
  }
  #down: Server | undefined;
  #current: Server | undefined;

  #make(): Server {
    const server = createServer((req, res) => {
      this.#answer(req, res).catch((e: unknown) => {
        res.destroy(e as Error);
      });
    });
    server.on('connection', (s) => {
      this.#sockets.add(s);
      s.on('close', () => this.#sockets.delete(s));
    });
    server.on('upgrade', (req, socket, head) => {
      this.#upgrade(req, socket as Socket, head);
    });
    return server;
  }
  async #listen(server: Server): Promise<void> {
    server.listen(this.#port, '127.0.0.1');
    await once(server, 'listening');
    this.#port = (server.address() as AddressInfo).port;
    this.#current = server;
  }

  /** As a kubeconfig would describe it. */
  access(): Promise<ClusterAccess> {
    return Promise.resolve({
      name: 'test',
      server: new URL(`http://127.0.0.1:${this.#port}`),
      namespace: 'desktops',
      options: () => Promise.resolve({}),
    });
  }

  /** The server is killed: every connection ends at once and nobody answers until `back`. Pods go on. */
  async kill(): Promise<void> {
    const server = this.#current!;
    for (const s of this.#sockets) s.destroy();
    this.#watches.clear();
    await new Promise((done) => {
      server.close(done);
    });
    this.#down = server;
  }
  async back(): Promise<void> {
    this.#down = undefined;
    await this.#listen(this.#make());
  }
  async close(): Promise<void> {
    for (const name of [...this.pods.keys()]) await this.#delete(name);
    if (!this.#down) await this.kill();
  }

  /** Cuts the exec channels of a pod (every pod), as a load balancer does. */
  cut(name?: string): number {
    const all = [...this.#channels].filter(([n]) => name === undefined || n === name).flatMap(([, s]) => [...s]);
    for (const ws of all) ws.terminate();
    return all.length;
  }
  /** Nothing more comes through the exec channels, and nobody says so. */
  freeze(): void {
    for (const ws of [...this.#channels.values()].flatMap((s) => [...s])) ws.pause();
  }
  get channels(): number {
    return [...this.#channels.values()].reduce((n, s) => n + s.size, 0);
  }
  /** What watches have not told is forgotten: whoever asks from before gets 410. */
  compact(): void {
    this.#oldest = this.#version + 1;
    this.#version += 2;
    for (const w of this.#watches) {
      w.res.write(
        JSON.stringify({
          type: 'ERROR',
          object: { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' },
        }) + '\n',
      );
      w.res.end();
    }
    this.#watches.clear();
  }
  /** Ends every watch without a word. */
  endWatches(): void {
    for (const w of this.#watches) w.res.end();
    this.#watches.clear();
  }
  get watching(): number {
    return this.#watches.size;
  }

  /** What the kubelet or the node controller would report. */
  setStatus(name: string, status: PodStatus): void {
    const pod = this.pods.get(name);
    if (pod) this.#put('MODIFIED', { ...pod, status });
  }
  async delete(name: string): Promise<void> {
    await this.#delete(name);
  }
  /** A pod that some other runtime made. */
  add(pod: PodObject): void {
    this.#put('ADDED', pod);
  }

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const url = new URL(req.url!, 'http://x'),
      [, , , , ns, resource, name] = url.pathname.split('/');
    const body = await bodyOf(req);
    const verb = { GET: name ? 'get' : 'list', POST: 'create', DELETE: 'delete' }[req.method!] ?? '';
    const what = `${url.searchParams.get('watch') === 'true' ? 'watch' : verb} ${resource ?? url.pathname}`;
    this.calls.push(what);
    if (this.tokens?.every((t) => req.headers.authorization !== `Bearer ${t}`))
      return status(res, 401, 'Unauthorized', 'Unauthorized');
    if ((this.faults.throttle ?? 0) > 0) {
      this.faults.throttle!--;
      res.writeHead(429, { 'retry-after': '0' });
      res.end();
      return;
    }
    if (url.pathname === '/version') return send(res, 200, { gitVersion: 'v1.34.4' });
    if (url.pathname.endsWith('/selfsubjectaccessreviews')) {
      const a = (body as { spec: { resourceAttributes: Record<string, string> } }).spec.resourceAttributes;
      const asked = `${a['verb']} ${a['resource']}${a['subresource'] ? `/${a['subresource']}` : ''}`;
      return send(res, 201, { status: { allowed: !this.faults.forbidden?.includes(asked) } });
    }
    if (this.faults.forbidden?.includes(what))
      return status(
        res,
        403,
        'Forbidden',
        `${resource} is forbidden: User "u" cannot ${what} in API group "" in the namespace "${ns}"`,
      );
    if (ns !== this.namespace) return status(res, 404, 'NotFound', `namespaces "${ns}" not found`);
    if (resource === 'events') return send(res, 200, { items: this.faults.events ?? [] });
    if (what === 'create pods') return this.#create(res, body as PodObject);
    if (what === 'list pods') return this.#list(res, url);
    if (what === 'watch pods') return this.#watch(res, url);
    if (what === 'delete pods') {
      const there = this.pods.has(name!);
      if (!there) return status(res, 404, 'NotFound', `pods "${name}" not found`);
      await this.#delete(name!);
      return send(res, 200, {});
    }
    return status(res, 404, 'NotFound', 'the server could not find the requested resource');
  }

  #create(res: ServerResponse, pod: PodObject): void {
    const name = pod.metadata!.name!;
    this.made.push(pod);
    if (this.faults.quota !== undefined && this.pods.size >= this.faults.quota)
      return status(
        res,
        403,
        'Forbidden',
        `pods "${name}" is forbidden: exceeded quota: desktops, requested: pods=1, used: pods=${this.pods.size}, limited: pods=${this.faults.quota}`,
      );
    this.#put('ADDED', { ...pod, status: { phase: 'Pending' } });
    send(res, 201, this.pods.get(name));
    void this.#start(name, pod);
  }
  async #start(name: string, pod: PodObject): Promise<void> {
    if (this.faults.startMs)
      await new Promise((r) => {
        setTimeout(r, this.faults.startMs);
      });
    if (!this.faults.start) await this.#backend?.start(pod);
    this.setStatus(
      name,
      this.faults.start ?? { ...running, ...(this.podIP === undefined ? {} : { podIP: this.podIP }) },
    );
  }
  #list(res: ServerResponse, url: URL): void {
    const items = [...this.pods.values()].filter((p) => fits(p, url.searchParams.get('labelSelector')));
    send(res, 200, { metadata: { resourceVersion: String(this.#version) }, items });
  }
  #watch(res: ServerResponse, url: URL): void {
    const from = Number(url.searchParams.get('resourceVersion')),
      selector = url.searchParams.get('labelSelector') ?? '';
    if (from < this.#oldest) return status(res, 410, 'Expired', 'too old resource version');
    res.writeHead(200, { 'content-type': 'application/json' });
    res.flushHeaders();
    if (this.faults.lags) {
      res.end('{"type":"ERROR","object":{"kind":"Status","code":504,"message":"Too large resource version"}}\n');
      return;
    }
    const w = { res, selector };
    for (const e of this.#history) if (e.version > from) tell(w, e.type, e.pod);
    this.#watches.add(w);
    res.on('close', () => this.#watches.delete(w));
  }
  async #delete(name: string): Promise<void> {
    const pod = this.pods.get(name);
    if (!pod) return;
    this.#put('DELETED', pod);
    this.cut(name);
    await this.#backend?.stop(name);
  }

  #put(type: string, pod: PodObject): void {
    const version = ++this.#version,
      now = { ...pod, metadata: { ...pod.metadata, resourceVersion: String(version) } },
      name = now.metadata.name!;
    if (type === 'DELETED') this.pods.delete(name);
    else this.pods.set(name, now);
    this.#history.push({ version, type, pod: now });
    for (const w of this.#watches) tell(w, type, now);
  }

  #upgrade(req: IncomingMessage, socket: Socket, head: Buffer): void {
    const url = new URL(req.url!, 'http://x'),
      name = url.pathname.split('/')[6]!;
    this.calls.push('create pods/exec');
    const refuse = (code: number, message: string): void => {
      const text = JSON.stringify({ kind: 'Status', code, message });
      socket.end(
        `HTTP/1.1 ${code} No\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
      );
    };
    const next = this.faults.refuseExec?.shift();
    if (next) return refuse(next.code, next.message);
    if (this.faults.forbidden?.includes('create pods/exec')) return refuse(403, 'pods/exec is forbidden');
    if (!this.pods.has(name)) return refuse(404, `pods "${name}" not found`);
    if (!this.#backend) return refuse(500, 'no programs here');
    this.#exec.handleUpgrade(req, socket, head, (ws) => {
      void this.#run(ws, name, url.searchParams.getAll('command'));
    });
  }
  async #run(ws: WebSocket, name: string, command: string[]): Promise<void> {
    const all = this.#channels.get(name) ?? new Set();
    this.#channels.set(name, all.add(ws));
    const early: Buffer[] = [];
    const running: { program?: Program } = {};
    const hear = (p: Program, m: Buffer): void => {
      if (m[0] === 0) p.stdin(m.subarray(1));
      else if (m[0] === 255 && m[1] === 0) p.end();
    };
    ws.on('message', (m: Buffer) => {
      if (running.program) hear(running.program, m);
      else early.push(m);
    });
    ws.on('close', () => {
      all.delete(ws);
      running.program?.cut();
    });
    const out = (stream: number) => (b: Buffer) => {
      if (ws.readyState === ws.OPEN) ws.send(Buffer.concat([Buffer.of(stream), b]));
    };
    const program = await this.#backend!.exec(name, command, {
      stdout: out(1),
      stderr: out(2),
      exit: (code) => {
        const said =
          code === 0
            ? { status: 'Success' }
            : { status: 'Failure', message: `command terminated with exit code ${code}` };
        out(3)(Buffer.from(JSON.stringify(said)));
        ws.close();
      },
    });
    running.program = program;
    for (const m of early) hear(program, m);
  }
}

const fits = (p: PodObject, selector: string | null): boolean =>
  (selector ?? '')
    .split(',')
    .filter((s) => s !== '')
    .every((s) => {
      const [k, v] = s.split('=') as [string, string];
      return p.metadata?.labels?.[k] === v;
    });
const tell = (w: { res: ServerResponse; selector: string }, type: string, pod: PodObject): void => {
  if (fits(pod, w.selector)) w.res.write(JSON.stringify({ type, object: pod }) + '\n');
};
const send = (res: ServerResponse, code: number, body: unknown): void => {
  res.writeHead(code, { 'content-type': 'application/json' });
  res.end(JSON.stringify(body));
};
const status = (res: ServerResponse, code: number, reason: string, message: string): void =>
  send(res, code, { kind: 'Status', status: 'Failure', code, reason, message });
async function bodyOf(req: IncomingMessage): Promise<unknown> {
  let text = '';
  for await (const d of req) text += String(d);
  return text === '' ? undefined : JSON.parse(text);
}
