import { spawn } from 'node:child_process';
import { StudioError } from '../../domain/index.js';
import { boundedLines } from '../../files/boundedLines.js';
import { ensureEngineEnvironment } from './environment.js';
import { logLines, MOST_LINE } from '../../files/logLines.js';
import { engineDir } from './server.js';

export interface MergeRequest {
  /** The model that was trained: a folder, or a name on the Hugging Face hub. */
  readonly model: string;
  /** Folder of a checkpoint or of an adapter, as an engine wrote it. */
  readonly weights: string;
  /** Folder to make. */
  readonly to: string;
  /** Progress, a line at a time. */
  readonly onLine: (line: string) => void;
  readonly signal: AbortSignal;
}
export interface Merged {
  /** Layers that the adapter changed, or tensors that were trained. */
  readonly layers: number;
  readonly parameters: number;
  readonly dtype: string;
}

/**
 * Writes a whole model folder: the base model with the trained weights in it. Takes the engine's environment, which is
 * made where it is missing, and memory for the model. Rejects with `engine.unavailable` or `trainer.invalid`.
 */
export async function mergeWeights(r: MergeRequest): Promise<Merged> {
  const source = engineDir(),
    { python } = await ensureEngineEnvironment({ source, onLine: r.onLine, signal: r.signal }),
    args = ['-m', 'dart_engine', 'merge', `--model=${r.model}`, `--weights=${r.weights}`, `--out=${r.to}`];
  const child = spawn(python, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    signal: r.signal,
    env: { ...process.env, PYTHONPATH: source },
  });
  // The program's answer is the last line that it prints.
  let said = '',
    log = '';
  const heard = (line: string): void => {
      if (line.trim() !== '') said = line;
    },
    tooLong = (): void => {
      said = '';
      log += `\nit printed a line of more than ${MOST_LINE} bytes`;
      child.kill();
    };
  boundedLines(child.stdout, MOST_LINE, heard, tooLong);
  logLines(child.stderr, (line) => {
    if (line.trim() === '') return;
    log = `${log}\n${line}`.slice(-8000);
    r.onLine(line);
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  const answer = answerOf(said);
  if (code === 0 && answer && 'layers' in answer) return answer;
  if (answer && 'error' in answer)
    throw new StudioError('trainer.invalid', answer.error, 'Check that the model is the one that was trained.');
  throw new StudioError(
    'engine.unavailable',
    `The model could not be written (exit code ${code}): ${log.trim().split('\n').at(-1) ?? 'no output'}`,
    'Its last lines say why; the whole model must fit into memory, and onto the disk.',
    { details: { output: log } },
  );
}

function answerOf(text: string): Merged | { readonly error: string } | undefined {
  try {
    return JSON.parse(text) as Merged | { readonly error: string };
  } catch {
    return undefined;
  }
}
