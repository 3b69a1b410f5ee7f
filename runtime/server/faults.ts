import { ErrorCodes, ResponseError } from 'vscode-jsonrpc/node';
import { StudioError, toRunError, type RunError, ServiceError } from '../domain/index.js';
import type { ErrorData } from '../protocol/errors.js';

/** A refusal by the server itself. */
export class ServerFault extends Error {
  readonly kind: ErrorData['kind'];
  readonly remedy: string;
  constructor(kind: ErrorData['kind'], message: string, remedy: string) {
    super(message);
    this.name = 'ServerFault';
    this.kind = kind;
    this.remedy = remedy;
  }
}

const codes: Partial<Record<ErrorData['kind'], number>> = {
  'params.invalid': ErrorCodes.InvalidParams,
  internal: ErrorCodes.InternalError,
  cancelled: -32800,
};
const foreseen = (e: unknown): e is ServiceError | ServerFault => e instanceof ServiceError || e instanceof ServerFault;

/** An error as a client is told: kind, message and remedy; never a stack. */
export function toResponseError(e: unknown): ResponseError<ErrorData> {
  const { kind, message, remedy } = foreseen(e) ? e : toRunError(e);
  return new ResponseError(codes[kind] ?? ErrorCodes.UnknownErrorCode, message, { kind, remedy });
}
/** An error in a notification, which carries domain errors only. */
export const toWireError = (e: unknown): RunError => {
  if (foreseen(e)) return { kind: 'internal', message: e.message, remedy: e.remedy };
  const { kind, message, remedy } = toRunError(e);
  return { kind, message, remedy };
};
/** The stack of what nobody foresaw, for the log; undefined for errors that were. */
export function unforeseen(e: unknown): string | undefined {
  if (foreseen(e) || e instanceof StudioError || toRunError(e).kind !== 'internal') return undefined;
  return e instanceof Error ? (e.stack ?? e.message) : String(e);
}
