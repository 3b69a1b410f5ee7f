import { StudioError, messageOf, toRunError } from '../../domain/index.js';
import { foreignJson, isObject } from '../../foreign/json.js';
import type { Environment, ErrorCode, Observed } from './types.js';

/** A session's answer to a message; undefined closes it. */
export interface Message {
  readonly type: 'observation' | 'state' | 'error' | 'mcp';
  readonly data: Readonly<Record<string, unknown>>;
}
/** Characters of an error: it may quote what was sent. */
const MOST_WORDS = 2000;
export const errorMessage = (message: string, code: ErrorCode, more: object = {}): Message => ({
  type: 'error',
  data: { message: message.slice(0, MOST_WORDS), code, ...more },
});
export const observedData = (o: Observed): Readonly<Record<string, unknown>> => ({
  observation: o.observation,
  reward: o.reward ?? null,
  done: o.done,
});
/** An error as OpenEnv names it. */
export function failed(e: unknown): Message {
  const { message, remedy } = toRunError(e),
    isTheirs = e instanceof StudioError && (e.kind === 'policy.invalid' || e.kind === 'config.invalid');
  return errorMessage(`${message} ${remedy}`.trim(), isTheirs ? 'VALIDATION_ERROR' : 'EXECUTION_ERROR');
}

/** A reset's options, a step's action: small, whoever sends them. */
export const BOUNDS = { depth: 32, values: 1 << 14 };

/** Answers one message of a client. Never rejects. */
export async function answerTo(env: Environment, text: string): Promise<Message | undefined> {
  let message: unknown;
  try {
    message = foreignJson(text, BOUNDS, (why) => new Error(why));
  } catch (e) {
    return errorMessage(`Invalid JSON: it ${messageOf(e)}`, 'INVALID_JSON');
  }
  if (!isObject(message)) return errorMessage('A message is a JSON object.', 'VALIDATION_ERROR');
  const { type, data = {} } = message;
  if (!isObject(data)) return errorMessage('data: a JSON object is needed.', 'VALIDATION_ERROR');
  try {
    switch (type) {
      case 'reset':
        return { type: 'observation', data: observedData(await env.reset(data)) };
      case 'step':
        return { type: 'observation', data: observedData(await env.step(data)) };
      case 'state':
        return { type: 'state', data: env.state() };
      case 'mcp':
        return { type: 'mcp', data: mcpAnswer(data) };
      case 'close':
        return undefined;
      default:
        return errorMessage(`Unknown message type: ${String(type).slice(0, 100)}`, 'UNKNOWN_TYPE');
    }
  } catch (e) {
    return failed(e);
  }
}

/** Desktops have no tools: what they can do is the action. JSON-RPC 2.0 answers that say so. */
export function mcpAnswer(request: unknown): Readonly<Record<string, unknown>> {
  const { jsonrpc, id, method } = isObject(request) ? request : {},
    answer = { jsonrpc: '2.0', id: typeof id === 'string' || typeof id === 'number' ? id : null };
  if (jsonrpc !== '2.0' || typeof method !== 'string')
    return { ...answer, error: { code: -32600, message: 'Invalid request' } };
  if (method === 'tools/list') return { ...answer, result: { tools: [] } };
  return { ...answer, error: { code: -32601, message: `There is no method ${method.slice(0, 100)}` } };
}
