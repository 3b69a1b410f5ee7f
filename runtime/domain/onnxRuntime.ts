import type * as Ort from 'onnxruntime-node';
import { messageOf } from '../foreign/messageOf.js';
import { StudioError } from './errors.js';

/**
 * ONNX Runtime, which is native code that a machine may not have. From 1.30 on its builds for Linux and macOS report
 * models, hardware and run times to Microsoft, and keep what they could not send in ~/.cache/Microsoft, unless this
 * variable is set before they are loaded.
 */
export async function loadOrt(): Promise<typeof Ort> {
  process.env['ORT_DISABLE_TELEMETRY'] = '1';
  try {
    const m = (await import('onnxruntime-node')) as unknown as { default?: typeof Ort } & typeof Ort;
    return m.InferenceSession ? m : m.default!;
  } catch (cause) {
    throw new StudioError(
      'engine.unavailable',
      `ONNX Runtime cannot be loaded on ${process.platform}-${process.arch}: ${messageOf(cause)}`,
      'Run `npm ci` again with ONNXRUNTIME_NODE_INSTALL=skip, or use a remote policy (policy: openai).',
      { cause },
    );
  }
}
