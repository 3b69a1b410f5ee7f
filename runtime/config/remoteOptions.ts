import { z } from 'zod';
import { count } from './fields.js';

/** What every model behind a chat endpoint has. */
export const chat = {
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

/** Of the engine that a run starts. */
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
  .describe('Options of the engine that the run starts (`engine`: `auto`).');
