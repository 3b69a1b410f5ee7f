import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ScriptedModel {
  /** Ends in `/v1`. */
  readonly url: string;
  close(): void;
}
/** A model server called `large` that answers a request as `answer` says of its body. */
export async function scriptedModel(answer: (body: string) => string): Promise<ScriptedModel> {
  const server = createServer((q, r) => {
    let body = '';
    q.on('data', (d) => (body += d));
    q.on('end', () => {
      r.setHeader('content-type', 'application/json');
      if (q.url!.endsWith('/models')) return r.end('{"data":[{"id":"large"}]}');
      const message = { role: 'assistant', content: answer(body) };
      r.end(JSON.stringify({ model: 'large', choices: [{ index: 0, message }] }));
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    close: () => {
      server.close();
    },
  };
}
/** The command that a request's task asks to run in the terminal. */
export const askedCommand = (body: string): string | undefined =>
  /Run \\"(touch [\w.-]+)\\" in the terminal/.exec(body)?.[1];
/** Whether the model has answered nothing yet. */
export const isFirstStep = (body: string): boolean => !body.includes('"assistant"');
export const DONE = "Action: finished(content='')";
export const typing = (command: string): string => `Action: type(content='${command}\\n')`;
