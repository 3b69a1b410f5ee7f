import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as after } from 'node:timers/promises';
import type { EngineEnvironment } from '../../../runtime/trainer/engine/environment.js';

/** A real vLLM on the processor, and the tiny model that it serves. */

export interface VllmServer {
  readonly url: string;
  /** Resolves when it says that it answers. */
  readonly ready: Promise<void>;
  /** Bytes of memory of its processes. */
  memory(): number;
  stop(): Promise<void>;
}
/** Words of the tiny model that are one token each: its answers are then a few tokens long. */
export const WORDS: readonly string[] = [
  "Action: click(start_box='<|box_start|>(",
  ")<|box_end|>')",
  "Action: finished(content='')",
  'You are a helpful assistant.',
  'Click the box.',
  'system\n',
  'user\n',
  'assistant\n',
  ...Array.from({ length: 20 }, (_, i) => String(25 + 50 * i)),
];

/** Writes it, and answers its token for a part of an image. */
export function tinyModel(e: EngineEnvironment, source: string, folder: string): { readonly parameters: number } {
  const said = execFileSync(e.python, ['-m', 'dart_engine', 'tiny-model', folder, '--words', WORDS.join(',')], {
    env: { ...process.env, PYTHONPATH: source },
    stdio: ['ignore', 'pipe', 'ignore'],
    encoding: 'utf8',
  });
  return JSON.parse(said) as { parameters: number };
}

/** Names of adapters and of the model are asked for as they are; nothing is fetched. */
const ENVIRONMENT = {
  HF_HUB_OFFLINE: '1',
  TRANSFORMERS_OFFLINE: '1',
  VLLM_NO_USAGE_STATS: '1',
  DO_NOT_TRACK: '1',
  VLLM_TARGET_DEVICE: 'cpu',
  VLLM_ALLOW_RUNTIME_LORA_UPDATING: 'True',
  VLLM_CPU_KVCACHE_SPACE: '1',
  // Several servers share the cores with whatever else runs here: threads that wait must not spin.
  VLLM_CPU_OMP_THREADS_BIND: 'nobind',
  OMP_NUM_THREADS: '1',
  OMP_WAIT_POLICY: 'PASSIVE',
};
const OPTIONS = [
  ...['--dtype', 'float32', '--enforce-eager', '--max-model-len', '4096', '--max-num-batched-tokens', '4096'],
  ...['--max-num-seqs', '16', '--enable-lora', '--max-loras', '2', '--max-cpu-loras', '8', '--max-lora-rank', '16'],
  ...['--limit-mm-per-prompt', '{"image":6,"video":0}', '--max-logprobs', '20'],
  // Usage says how much of a prompt was in the prefix cache.
  '--enable-prompt-tokens-details',
];

/** Starts it; its log is `log`. */
export async function startVllm(python: string, model: string, log: string): Promise<VllmServer> {
  const port = await freePort(),
    // The module and not the command `vllm`, which asks for a distribution of another name.
    module = ['-m', 'vllm.entrypoints.openai.api_server', '--model', model, '--host', '127.0.0.1'],
    child = spawn(python, [...module, '--port', String(port), ...OPTIONS], {
      env: { ...process.env, ...ENVIRONMENT },
      stdio: ['ignore', 'pipe', 'pipe'],
      // Its engine and worker are in the same group: they are ended together.
      detached: true,
    });
  const out = createWriteStream(log);
  child.stdout.pipe(out, { end: false });
  child.stderr.pipe(out, { end: false });
  const url = `http://127.0.0.1:${port}`,
    // It says so just before it listens, and nothing once it does.
    ready = said(child, 'Application startup complete', log).then(() => listening(url));
  ready.catch(() => undefined);
  return { url, ready, memory: () => memoryOf(child.pid!), stop: () => stop(child) };
}
async function said(child: ChildProcess, what: string, log: string): Promise<void> {
  const ended = once(child, 'exit').then(() => {
    throw new Error(`vLLM ended while it started; see ${log}`);
  });
  const lines = [child.stdout!, child.stderr!].map(
    (stream) =>
      new Promise<void>((resolve) => {
        const reader = createInterface(stream);
        reader.on('line', (line) => {
          if (!line.includes(what)) return;
          resolve();
        });
      }),
  );
  await Promise.race([ended, ...lines]);
  ended.catch(() => undefined);
}

async function listening(url: string): Promise<void> {
  const until = Date.now() + 10_000;
  for (;;)
    try {
      await fetch(`${url}/health`);
      return;
    } catch (e) {
      if (Date.now() > until) throw e;
      await after(20);
    }
}

/** SIGTERM to the server, which ends the others; whatever of its group is left after that is killed. */
async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = once(child, 'exit'),
      force = setTimeout(() => child.kill('SIGKILL'), 20_000);
    child.kill('SIGTERM');
    await ended;
    clearTimeout(force);
  }
  try {
    process.kill(-child.pid!, 'SIGKILL');
  } catch {
    // None is left.
  }
}

function memoryOf(group: number): number {
  const table = execFileSync('ps', ['-eo', 'pgid=,rss='], { encoding: 'utf8' });
  return table
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .reduce((sum, [pgid, rss]) => (pgid === group ? sum + 1024 * rss! : sum), 0);
}

async function freePort(): Promise<number> {
  const s = createServer();
  await new Promise<void>((resolve) => s.listen(0, '127.0.0.1', resolve));
  const { port } = s.address() as { port: number };
  await new Promise((resolve) => s.close(resolve));
  return port;
}
