import { z } from 'zod';
import { count, whole } from './fields.js';

/** Options of every model behind a chat endpoint. */
const chat = {
  apiKeyEnv: z
    .string()
    .optional()
    .describe('Environment variable that holds the key of these servers; keys are never written in run files.'),
  coordinates: z
    .enum(['relative1000', 'qwen25', 'relative999', 'relative1'])
    .default('qwen25')
    .describe('How the model writes coordinates.'),
  maxTokens: count(512, 'Maximum tokens of one answer.'),
  images: count(5, 'Newest screenshots kept in the prompt (paper: 5).'),
};

/** `policy.vlm`. */
export const vlmOptions = z
  .strictObject({
    model: z
      .string()
      .describe(
        'Model that is trained: a name or folder that the engine and its servers know. For an engine that the run starts: a folder, beside the run file too, or a name on the Hugging Face hub.',
      ),
    endpoints: z
      .array(z.url())
      .default([])
      .describe(
        'OpenAI-compatible servers that act with the model, e.g. http://127.0.0.1:8000/v1; each is one replica. None: the engine that the run starts (`trainer.remote.engine`) acts too.',
      ),
    adapters: z
      .string()
      .optional()
      .describe(
        'Folder of adapters as these servers see it, where it is not what the engine answers (a shared folder mounted elsewhere).',
      ),
    ...chat,
    imageToken: whole(151_655, 'Token id that stands for a part of an image in prompts (Qwen-VL, UI-TARS: 151655).'),
    alternatives: whole(
      8,
      'Number of most probable tokens requested beside each sampled one, for the entropy and the inspector; 0 = none.',
    ),
    concurrency: count(
      16,
      'Maximum requests that one server handles at once; fewer while its own metrics (/metrics of vLLM, SGLang) report that its memory is full.',
    ),
    prompt: z
      .string()
      .optional()
      .describe(
        'Text in place of the UI-TARS prompt; `{instruction}` stands for the task. Answers keep their grammar.',
      ),
  })
  .describe('Vision-language model (`kind`: `vlm`).');

/** `policy.openai`. */
export const openAiOptions = z
  .strictObject({
    baseUrls: z.array(z.url()).min(1).describe('Endpoints, e.g. http://127.0.0.1:8000/v1'),
    model: z.string().describe('Model name to ask for.'),
    ...chat,
  })
  .describe('Remote policy.');

/** Options of the engine that a run starts. */
export const engineOptions = z
  .strictObject({
    device: z
      .string()
      .regex(/^(auto|cpu|mps|cuda(:\d{1,2})?)$/, '"auto", "cpu", "mps", "cuda" or "cuda:1" only')
      .default('auto')
      .describe('Device: `auto`, `cuda`, `cuda:1`, `mps` or `cpu`.'),
    dtype: z
      .enum(['auto', 'float32', 'bfloat16'])
      .default('auto')
      .describe('Data type of the base model: `auto` is bfloat16 on a GPU, float32 elsewhere.'),
    microBatchTokens: count(
      16_384,
      'Tokens that pass through the model at once in training; lower it if memory runs out.',
    ),
    minPixels: z
      .int()
      .positive()
      .optional()
      .describe("Area below which pictures are enlarged; default: the checkpoint's."),
    maxPixels: z
      .int()
      .positive()
      .optional()
      .describe(
        "Area above which pictures are reduced, which loses detail and saves memory and time; default: the checkpoint's.",
      ),
    maxContext: count(32_768, 'Maximum tokens of a prompt and its answer.'),
  })
  .optional()
  .describe(
    'Options of the engine that the run starts (`engine`: `auto`). Beside a `url`, `minPixels` and `maxPixels` alone, as that engine was started with them: clicks are read by them.',
  );
