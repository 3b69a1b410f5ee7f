/** An option of `python -m dart_engine serve` (dart_engine/__main__.py), for who starts an engine by hand. */
export interface ServeFlag {
  readonly flag: string;
  readonly usual: string;
  readonly says: string;
}
const flag = (name: string, usual: string, says: string): ServeFlag => ({ flag: `--${name}`, usual, says });

/** The most important flags; the table of README.md beside this file has the same. */
export const SERVE_FLAGS: readonly ServeFlag[] = [
  flag('lora', 'as the client asks', 'rank of adapters where a client names none; 0 trains all weights'),
  flag('port', '8377', 'port; 0 chooses a free one'),
  flag('host', '127.0.0.1', 'address; any other needs a key in DART_ENGINE_API_KEY'),
  flag('device', 'auto', 'auto, cuda, cuda:1, cpu, mps'),
  flag('dtype', 'auto', 'auto (bfloat16 on a GPU, float32 elsewhere), float32, bfloat16'),
  flag('attention', 'sdpa', 'sdpa, eager, flash_attention_2'),
  flag(
    'checkpointing',
    'on a GPU',
    'compute activations again in the backward pass: less memory, more time; or --no-checkpointing',
  ),
  flag('micro-batch-tokens', '16384', 'tokens that pass through the model at once in training'),
  flag(
    'max-pixels',
    "the checkpoint's",
    'area above which pictures are reduced; a run says the same in trainer.remote.options.maxPixels',
  ),
  flag(
    'min-pixels',
    "the checkpoint's",
    'area below which pictures are enlarged; a run says the same in trainer.remote.options.minPixels',
  ),
  flag('max-context', '32768', 'most tokens of a prompt and its answer'),
  flag('max-images', '64', 'most pictures of a prompt'),
  flag('sample-rows', '64', 'sequences sampled together'),
  flag('sample-tokens', '131072', 'padded tokens, answers included, of a batch of samples'),
  flag('adapter-root', 'none', 'folder that adapters may be loaded from, beside --state; may be given several times'),
];

/** The list of flags in `engine serve --help`. */
export function serveFlagsHelp(): string {
  const width = Math.max(...SERVE_FLAGS.map((f) => f.flag.length));
  return [
    '',
    'Options of the engine itself:',
    ...SERVE_FLAGS.map(({ flag, says, usual }) => `  ${flag.padEnd(width)}  ${says} (default: ${usual})`),
  ].join('\n');
}
