// Starts the engine as a child process and knows when it is ready.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { StudioError } from '../../domain/index.js';
import type { EngineEnvironment } from './environment.js';

export interface ServeOptions {
  readonly environment: EngineEnvironment;
  /** The folder that holds the package dart_engine. */
  readonly source: string;
  /** Options of `python -m dart_engine serve`, for instance ['--model', folder, '--state', folder, '--port', '0']. */
  readonly args: readonly string[];
  readonly onLog?: (line: string) => void;
}

export interface RunningEngine {
  readonly url: string;
  readonly device: string;
  readonly process: ChildProcess;
  /** Ends it in order; after the grace period, in milliseconds, by force. */
  stop(graceMs?: number): Promise<void>;
}

/** Resolves when the model is loaded and the port answers; throws StudioError with the last log lines otherwise. */
export async function serveEngine(options: ServeOptions): Promise<RunningEngine> {
  const { source, environment } = options;
  const child = spawn(environment.python, ['-m', 'dart_engine', 'serve', ...options.args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, PYTHONPATH: source, PYTHONUNBUFFERED: '1', TOKENIZERS_PARALLELISM: 'false' },
  });
  const last: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => {
    last.push(line);
    if (last.length > 30) last.shift();
    options.onLog?.(line);
  });
  const ready = await readyLine(child);
  if (ready === undefined) {
    throw new StudioError(
      'engine.unavailable',
      `The engine did not start (exit code ${child.exitCode}): ${last.at(-1) ?? 'no output'}`,
      'Read its last lines; check --model, --device and the free memory.',
      { details: { output: last.join('\n') } },
    );
  }
  return { ...ready, process: child, stop: (graceMs = 10_000) => stop(child, graceMs) };
}

function readyLine(child: ChildProcess): Promise<{ url: string; device: string } | undefined> {
  return new Promise((resolve) => {
    child.on('error', () => resolve(undefined));
    child.on('close', () => resolve(undefined));
    if (!child.stdout) return resolve(undefined);
    createInterface({ input: child.stdout }).on('line', (line) => {
      const event = parse(line);
      if (event?.event === 'ready') resolve({ url: event.url, device: event.device });
    });
  });
}

function parse(line: string): { event: string; url: string; device: string } | undefined {
  try {
    return JSON.parse(line) as { event: string; url: string; device: string };
  } catch {
    return undefined;
  }
}

async function stop(child: ChildProcess, graceMs: number): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const force = setTimeout(() => child.kill('SIGKILL'), graceMs);
  await ended;
  clearTimeout(force);
}
