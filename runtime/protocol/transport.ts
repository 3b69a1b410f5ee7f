/**
 * JSON-RPC messages in the text frames of a WebSocket, for both ends. Whoever owns the socket feeds the reader and
 * carries the text away.
 */
import {
  AbstractMessageReader,
  AbstractMessageWriter,
  type DataCallback,
  type Disposable,
  type Message,
  type MessageReader,
  type MessageWriter,
} from 'vscode-jsonrpc';
import { isObject } from '../foreign/json.js';

const isMessage = (m: unknown): m is Message => {
  if (!isObject(m)) return false;
  const id = m['id'];
  if (
    m['jsonrpc'] !== '2.0' ||
    !(id === undefined || id === null || typeof id === 'string' || Number.isSafeInteger(id))
  )
    return false;
  if (m['params'] !== undefined && (typeof m['params'] !== 'object' || m['params'] === null)) return false;
  if (m['method'] === '$/cancelRequest') {
    // the library trusts this one
    const of = (m['params'] as { id?: unknown } | undefined)?.id;
    return id === undefined && (typeof of === 'string' || Number.isSafeInteger(of));
  }
  if (typeof m['method'] === 'string') return id !== null;
  return id !== undefined && ('result' in m || 'error' in m);
};

export class SocketReader extends AbstractMessageReader implements MessageReader {
  #deliver: DataCallback | undefined;
  listen(callback: DataCallback): Disposable {
    this.#deliver = callback;
    return {
      dispose: () => {
        this.#deliver = undefined;
      },
    };
  }
  /** Takes one text frame; false when it is not a JSON-RPC message. */
  push(text: string): boolean {
    let m: unknown;
    try {
      m = JSON.parse(text);
    } catch {
      return false;
    }
    if (!isMessage(m)) return false;
    this.#deliver?.(m);
    return true;
  }
  /** The socket is closed. */
  end(): void {
    this.fireClose();
  }
}

export class SocketWriter extends AbstractMessageWriter implements MessageWriter {
  readonly #send: (text: string) => Promise<void>;
  /** `send` resolves when the socket has taken the frame off our hands, so that awaiting a write is back-pressure. */
  constructor(send: (text: string) => Promise<void>) {
    super();
    this.#send = send;
  }
  async write(m: Message): Promise<void> {
    await this.#send(JSON.stringify(m));
  }
  end(): void {
    /* the socket's owner closes it */
  }
}
