// Starts the engine as a child process and knows when it is ready.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { StudioError } from '../../domain/index.js';
import { boundedLines } from '../../files/boundedLines.js';
import type { EngineEnvironment } from './environment.js';
import { logLines, MOST_LINE } from '../../files/logLines.js';

export interface ServeOptions {
  readonly environment: EngineEnvironment;
  /** The folder that holds the package dart_engine. */
  readonly source: string;
  /** Options of `python -m dart_engine serve`, for instance ['--model', folder, '--state', folder, '--port', '0']. */
  readonly args: readonly string[];
  readonly onLog?: (line: string) => void;
  /** Ends the start: it rejects with `cancelled`, and the process is gone. */
  readonly signal?: AbortSignal;
  /** The key that callers must send; without one whoever is on this machine may call. */
  readonly key?: string;
  /**
   * The engine ends with this process, however that ends, and gets no Ctrl-C of the terminal. Default: the terminal's
   * signals reach it.
   */
  readonly own?: boolean;
  /** Working folder of the engine. Default: this process's. */
  readonly cwd?: string;
  /** A start that says nothing for so long has failed. Default: 10 minutes, for a large model on a slow disk. */
  readonly silenceMs?: number;
}

export interface RunningEngine {
  readonly url: string;
  readonly device: string;
  readonly process: ChildProcess;
  /** The last lines of its log. */
  readonly log: readonly string[];
  /** Ends it in order; after the grace period, in milliseconds, by force. */
  stop(graceMs?: number): Promise<void>;
}

const SILENCE_MS = 600_000;
/** Lines that an error carries. */
const LAST_LINES = 30;
/** The environment variable of its key (`--key-env`). */
const KEY_ENV = 'DART_ENGINE_API_KEY';

/** Resolves when the model is loaded and the port answers; throws StudioError with the last log lines otherwise. */
export async function serveEngine(options: ServeOptions): Promise<RunningEngine> {
  const { source, environment, key, own = false } = options;
  const child = spawn(
    environment.python,
    ['-m', 'dart_engine', 'serve', ...options.args, ...(own ? ['--end-with-stdin'] : [])],
    {
      // The other end of its standard input is held by this process alone, so the engine ends when this process does.
      stdio: [own ? 'pipe' : 'ignore', 'pipe', 'pipe'],
      detached: own && process.platform !== 'win32',
      windowsHide: true,
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      env: {
        ...process.env,
        PYTHONPATH: source,
        PYTHONUNBUFFERED: '1',
        TOKENIZERS_PARALLELISM: 'false',
        // Threads that wait for work would take the cores from the desktops.
        OMP_WAIT_POLICY: process.env['OMP_WAIT_POLICY'] ?? 'PASSIVE',
        ...(key === undefined ? {} : { [KEY_ENV]: key }),
      },
    },
  );
  child.stdin?.on('error', () => undefined);
  const log: string[] = [];
  logLines(child.stderr!, (line) => {
    log.push(line);
    if (log.length > LAST_LINES) log.shift();
    options.onLog?.(line);
  });
  const ready = await readyLine(child, options);
  if (typeof ready === 'string') {
    await stop(child, 0);
    throw options.signal?.aborted
      ? cancelled()
      : // One that is nobody's own was started by its flags: no run file says anything to it.
        engineFailed('The engine did not start', ready, log, own ? LESS_MEMORY : LESS_MEMORY_FLAGS);
  }
  return { ...ready, process: child, log, stop: (graceMs = 10_000) => stop(child, graceMs) };
}

/** Resolves with the address and the device of the engine, or with why it does not answer. */
function readyLine(
  child: ChildProcess,
  { signal, silenceMs = SILENCE_MS }: ServeOptions,
): Promise<{ url: string; device: string } | string> {
  return new Promise((resolve) => {
    let silence: NodeJS.Timeout;
    const done = (result: { url: string; device: string } | string): void => {
        clearTimeout(silence);
        signal?.removeEventListener('abort', stopped);
        resolve(result);
      },
      stopped = (): void => done('it was stopped'),
      heard = (): void => {
        clearTimeout(silence);
        silence = setTimeout(() => done(`it said nothing for ${Math.round(silenceMs / 1000)} s`), silenceMs);
      };
    heard();
    if (signal?.aborted) return stopped();
    signal?.addEventListener('abort', stopped, { once: true });
    child.on('error', (e) => done(e.message));
    child.on('close', () => done(howItEnded(child)));
    // Bytes and not lines: a download rewrites its line.
    child.stderr?.on('data', heard);
    const said = (line: string): void => {
      const event = parse(line);
      if (event?.event === 'ready') done({ url: event.url, device: event.device });
    };
    boundedLines(child.stdout!, MOST_LINE, said, () => done(`it printed a line of more than ${MOST_LINE} bytes`));
  });
}

export const howItEnded = ({ exitCode, signalCode }: Pick<ChildProcess, 'exitCode' | 'signalCode'>): string =>
  signalCode === null ? `exit code ${exitCode}` : `ended by ${signalCode}`;

/** The error for an engine that ended, with its last lines and what to do about it. */
export function engineFailed(what: string, why: string, log: readonly string[], lessMemory = LESS_MEMORY): StudioError {
  const last = log.findLast((l) => l.trim() !== '')?.trim() ?? 'no output',
    memory = /out of memory|MemoryError|cannot allocate memory/i.test(log.join('\n')) || /SIGKILL/.test(why);
  return new StudioError(
    'engine.unavailable',
    `${what} (${why}): ${last.slice(0, 500)}`,
    memory ? lessMemory : 'Its last lines say why; check the model, the device and the free memory.',
    { details: { output: log.join('\n') } },
  );
}
/** Remedy for an engine of a run that has no memory left. */
const LESS_MEMORY =
  'It most likely ran out of memory. Lower trainer.remote.options.microBatchTokens, trainer.remote.options.maxPixels, policy.vlm.images or policy.vlm.concurrency; set trainer.remote.rank to 16 or less instead of 0; or choose a smaller model.';
/** The same of an engine that was started by its flags (`engine serve`). */
export const LESS_MEMORY_FLAGS =
  'It most likely ran out of memory. Lower --micro-batch-tokens, --sample-rows, --sample-tokens or --max-context; --max-pixels makes pictures smaller, and a run that names this engine must then say the same in trainer.remote.options.maxPixels; turn --checkpointing on; set --lora to 16 or less instead of 0; or choose a smaller model.';

const cancelled = (): StudioError =>
  new StudioError('cancelled', 'The engine was stopped while it was starting.', 'Start it again when you are ready.');

function parse(line: string): { event: string; url: string; device: string } | undefined {
  try {
    return JSON.parse(line) as { event: string; url: string; device: string };
  } catch {
    return undefined;
  }
}

async function stop(child: ChildProcess, graceMs: number): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill(graceMs > 0 ? 'SIGTERM' : 'SIGKILL');
  const force = setTimeout(() => child.kill('SIGKILL'), graceMs);
  await ended;
  clearTimeout(force);
}
