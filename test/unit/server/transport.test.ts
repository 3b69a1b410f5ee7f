import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createMessageConnection } from 'vscode-jsonrpc/node';
import { SocketReader, SocketWriter } from '../../../runtime/protocol/transport.js';

function peer(): { reader: SocketReader; sent: string[] } {
  const reader = new SocketReader(),
    sent: string[] = [];
  const rpc = createMessageConnection(
    reader,
    new SocketWriter(async (t) => {
      sent.push(t);
    }),
  );
  rpc.onRequest((method: string) => method);
  rpc.listen();
  return { reader, sent };
}

describe('text frames', () => {
  it('never throw, whatever is in them, and only JSON-RPC gets through', () => {
    const { reader } = peer();
    const word = fc.constantFrom(
      'jsonrpc',
      'id',
      'method',
      'params',
      'result',
      'error',
      '2.0',
      '$/cancelRequest',
      '$/progress',
    );
    const almost = fc
      .dictionary(word, fc.oneof(word, fc.jsonValue(), fc.record({ id: fc.jsonValue() })))
      .map((o) => ({ jsonrpc: '2.0', ...o }));
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          almost.map((o) => JSON.stringify(o)),
        ),
        (text) => {
          expect(typeof reader.push(text)).toBe('boolean');
        },
      ),
      { numRuns: 2000 },
    );
    for (const bad of [
      '',
      '1',
      '[]',
      '{}',
      '{"jsonrpc":"2.0"}',
      '{"jsonrpc":"2.0","id":1}',
      '{"id":1,"method":"x"}',
      '{"jsonrpc":"2.0","id":1.5,"method":"x"}',
    ])
      expect(reader.push(bad), bad).toBe(false);
  });
  it('carry a request and its answer', async () => {
    const { reader, sent } = peer();
    expect(reader.push('{"jsonrpc":"2.0","id":"a","method":"run/list","params":{}}')).toBe(true);
    while (sent.length === 0) await new Promise((go) => setImmediate(go));
    expect(JSON.parse(sent[0]!)).toEqual({ jsonrpc: '2.0', id: 'a', result: 'run/list' });
  });
});
