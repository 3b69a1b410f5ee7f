/**
 * Loaded before the runtime by the chaos controller alone (`node --import`): the bundle itself is the one that is
 * shipped and has no fault points. A fault is armed by a file in the folder `DART_CHAOS`; whoever comes to its place
 * first takes it.
 */
import processModule, { type ChildProcess } from 'node:child_process';
import { appendFileSync, readFileSync, rmSync } from 'node:fs';
import fsp from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { Socket } from 'node:net';
import os from 'node:os';
import { join } from 'node:path';
import threads, { isMainThread } from 'node:worker_threads';

/**
 * The runtime leaves a busy machine to others, and how long it then takes is theirs to say. What is measured here is the
 * runtime, so it runs beside others as their equal.
 */
function asEqual(): void {
  os.setPriority = () => undefined;
  const writeFile = fsp.writeFile.bind(fsp);
  fsp.writeFile = ((path: string, data: string, ...rest: []) =>
    writeFile(
      path,
      /\/cpu\.shares$/.test(path) ? '1024' : /\/cpu\.weight$/.test(path) ? '100' : data,
      ...rest,
    )) as never;
  syncBuiltinESMExports();
}

const dir = process.env['DART_CHAOS'];
if (dir !== undefined) asEqual();
if (dir !== undefined && !isTool()) install(dir);

/** The other workers (thumbnails, pictures) and short-lived tools are left alone. */
function isTool(): boolean {
  const role = (threads.workerData as { role?: string } | null)?.role ?? '';
  return !isMainThread && !['__index', '__interchange', '__metrics'].includes(role);
}

function install(folder: string): void {
  const armedFile = join(folder, 'armed');
  const armed = (): string => {
    try {
      return readFileSync(armedFile, 'utf8');
    } catch {
      return '';
    }
  };
  const die = (point: string, pid = process.pid): void => {
    rmSync(armedFile, { force: true });
    appendFileSync(join(folder, 'hits'), `${point}\n`);
    process.kill(pid, 'SIGKILL');
  };
  /** Whether this place was armed; taken at most once. */
  const takes = (point: string): boolean => armed() === point;

  if ((threads.workerData as { role?: string } | null)?.role === '__metrics') {
    // Registered before the runtime's own listener: the job is never begun.
    threads.parentPort!.on('message', () => {
      if (takes('verifier')) hang(armedFile);
    });
    return;
  }

  const paths = new WeakMap<object, string>(),
    open = fsp.open.bind(fsp),
    rename = fsp.rename.bind(fsp);
  let patched = false;
  fsp.open = (async (path: string, ...rest: []) => {
    const handle = await open(path, ...rest);
    paths.set(handle, String(path));
    if (!patched) {
      patched = true;
      patchHandles(Object.getPrototypeOf(handle) as Handle);
    }
    return handle;
  }) as typeof fsp.open;
  fsp.rename = async (from, to) => {
    if (String(to).endsWith('index.sqlite') && takes('snapshot')) die('snapshot');
    const checkpoint = /checkpoints\/v\d+$/.test(String(to));
    if (checkpoint && takes('checkpoint')) die('checkpoint');
    await rename(from, to);
    if (checkpoint && takes('checkpoint-unsaid')) die('checkpoint-unsaid', process.ppid);
    if (checkpoint && takes('lesson-unsaid')) die('lesson-unsaid', process.ppid);
  };

  function patchHandles(proto: Handle): void {
    const { write, datasync } = proto;
    proto.write = async function (this: object, b: Buffer, from: number, n: number, at: number) {
      const path = paths.get(this) ?? '',
        journal = path.endsWith('.journal') && n > 24;
      if (journal) {
        const point = armed(),
          says = (type: string): boolean => b.includes(`"type":"${type}"`);
        if (
          point === 'journal-write' ||
          (point === 'claim' && says('batch.claimed')) ||
          (point === 'trained' && says('batch.trained')) ||
          (point === 'demonstration' && b.includes('"rollout":"demo/')) ||
          (point === 'import' && path.includes('/imported-')) ||
          (point === 'annotation' && path.includes('/annotations/'))
        ) {
          const marks: Record<string, string> = { claim: '"batch.claimed"', trained: '"batch.trained"' },
            mark = marks[point],
            cut = mark === undefined ? n >> 1 : b.indexOf(mark);
          await write.call(this, b, from, cut, at);
          die(point);
        }
      }
      return write.call(this, b, from, n, at);
    };
    proto.datasync = async function (this: object) {
      await datasync.call(this);
      if (paths.get(this)?.endsWith('.journal') === true && takes('journal-index')) die('journal-index');
    };
  }
  syncBuiltinESMExports();
  if (isMainThread) patchProcesses(folder, takes, die);
}
interface Handle {
  write(this: object, b: Buffer, from: number, n: number, at: number): Promise<unknown>;
  datasync(this: object): Promise<void>;
}

/** What the trainer is told, and the place that it is. */
const LESSONS: Readonly<Record<string, string>> = { read: 'reading', imitate: 'warm-start' };

/** Computes for ever, as a regular expression that never ends. */
function hang(armedFile: string): never {
  rmSync(armedFile, { force: true });
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000);
}

function patchProcesses(folder: string, takes: (p: string) => boolean, die: (p: string, pid?: number) => void): void {
  const told = (child: ChildProcess, m: unknown): void => {
    const { type, kind, command } = m as { type?: string; kind?: string; command?: { kind: string } };
    if (type === 'swap' && takes('sync')) die('sync');
    if (type === 'swap' && takes('sync-replica')) die('sync-replica', child.pid);
    if (kind === 'command' && command?.kind === 'update' && takes('update')) die('update', child.pid);
    const lesson = kind === 'command' && LESSONS[command?.kind ?? ''];
    if (lesson && takes(lesson)) die(lesson);
    if (lesson && takes(`${lesson}-trainer`)) die(`${lesson}-trainer`, child.pid);
  };
  // A child has its own `send`.
  const fork = processModule.fork.bind(processModule);
  processModule.fork = ((...args: Parameters<typeof fork>) => {
    const child = fork(...args),
      send = child.send.bind(child) as (m: unknown, ...rest: unknown[]) => boolean;
    child.send = ((m: unknown, ...rest: unknown[]) => {
      const sent = send(m, ...rest);
      told(child, m);
      return sent;
    }) as typeof child.send;
    return child;
  }) as typeof processModule.fork;

  const write = Socket.prototype.write as (this: Socket, ...args: unknown[]) => boolean;
  Socket.prototype.write = function (this: Socket, ...args: unknown[]) {
    const sent = write.apply(this, args);
    const [line] = args;
    if (typeof line === 'string' && line.includes('"cmd":"reset"') && takes('reset'))
      setTimeout(() => die('reset'), 20);
    return sent;
  } as typeof Socket.prototype.write;

  /** Threads cannot be killed from outside. */
  const indexes = new Set<threads.Worker>(),
    Worker = threads.Worker;
  threads.Worker = class extends Worker {
    constructor(...args: ConstructorParameters<typeof Worker>) {
      super(...args);
      const data = args[1]?.workerData as { role?: string } | undefined;
      if (data?.role !== '__index') return;
      indexes.add(this);
      this.once('exit', () => indexes.delete(this));
    }
  };
  syncBuiltinESMExports();
  const now = Date.now.bind(Date),
    commandFile = join(folder, 'command');
  let offset = 0;
  Date.now = () => now() + offset;
  setInterval(() => {
    let command = '';
    try {
      command = readFileSync(commandFile, 'utf8');
    } catch {
      return;
    }
    if (process.argv[2] !== 'serve') return;
    rmSync(commandFile, { force: true });
    if (command === 'end-index') for (const w of indexes) void w.terminate();
    else offset += Number(command);
    appendFileSync(join(folder, 'hits'), `${command}\n`);
  }, 100).unref();
}
