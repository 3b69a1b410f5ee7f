import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { cacheFolder, earlierCacheFolder } from '../files/cacheFolder.js';
import { exportModel, type ExportedModel } from '../run/exportModel.js';
import { runFolder } from '../run/runFolders.js';
import { thisBundle } from '../service/engines.js';
import { countOption, type Options } from './options.js';
import { onInterrupt } from './interrupt.js';
import { print, printJson, statusLine } from './output.js';

/** `export-model RUN DIR [--merged]`: trained weights as transformers and vLLM load them. */
export async function writeModel(run: string, dir: string, o: Options): Promise<number> {
  const json = o['json'] === true,
    stop = onInterrupt('Stopping: an unfinished export is deleted.'),
    line = statusLine(json);
  try {
    const made = await exportModel({
      run: resolve(runFolder(String(o['runs'] ?? 'runs'), run)),
      to: dir,
      merged: o['merged'] === true,
      version: countOption(o, 'checkpoint', 0),
      states: typeof o['state'] === 'string' ? [resolve(o['state'])] : [defaultState()],
      entry: thisBundle(),
      signal: stop.signal,
      onLine: (text) => line.show(text),
    });
    line.clear();
    if (json) printJson(made);
    else print(`${lines(made).join('\n')}\n`);
    return 0;
  } finally {
    line.clear();
    stop.off();
  }
}
/** Folder in which `engine serve` keeps weights unless it is told otherwise. */
export const defaultState = (): string => {
  const before = earlierCacheFolder('engine-state'),
    now = cacheFolder('engine-state');
  return !existsSync(now) && existsSync(before) ? before : now;
};

function lines({ kind, dir, version, base }: ExportedModel): string[] {
  const what = { adapter: 'LoRA adapter', model: 'whole model', onnx: 'ONNX network' }[kind];
  const next = {
    adapter: [
      `transformers   model.load_adapter("${dir}"), or peft's PeftModel.from_pretrained(model, "${dir}")`,
      `vLLM           vllm serve ${base} --enable-lora --max-lora-rank R --lora-modules policy=${dir}`,
    ],
    model: [`transformers   AutoModelForImageTextToText.from_pretrained("${dir}")`, `vLLM           vllm serve ${dir}`],
    onnx: [`ONNX Runtime   policy.onnx, and reader.onnx beside it: plain models with their weights`],
  }[kind];
  return [`Wrote v${version} as ${kind === 'onnx' ? 'an' : 'a'} ${what} to ${dir}.`, ...next];
}
