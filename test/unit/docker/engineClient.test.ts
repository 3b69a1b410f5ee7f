import { mkdtempSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { engineClient } from '../../../runtime/cluster/providers/engineClient.js';
import { engineError } from '../../../runtime/cluster/providers/dockerImage.js';
import { engineLines, type EngineLine } from '../../../runtime/cluster/providers/engineLines.js';
import { Readable } from 'node:stream';
import type Docker from 'dockerode';

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});
/** A client of an engine that answers everything as the test says. */
async function engine(answer: RequestListener): Promise<Docker> {
  const socketPath = join(mkdtempSync(join(tmpdir(), 'engine-')), 's');
  server = createServer(answer);
  await new Promise<void>((done) => server!.listen(socketPath, done));
  return engineClient({ socketPath });
}
/** Says the same for ever; tells when the other side has had enough. */
const endless = (status: number): { answer: RequestListener; over: Promise<number> } => {
  let over!: (sent: number) => void;
  const ended = new Promise<number>((done) => (over = done));
  return {
    over: ended,
    answer: (_, res) => {
      let sent = 0;
      const more = (): void => {
        while (!res.destroyed && res.write('x'.repeat(1 << 16))) sent += 1 << 16;
      };
      res.writeHead(status);
      res.on('drain', more).on('close', () => over(sent));
      more();
    },
  };
};

describe('an engine', () => {
  it('is answered as by its library: JSON, what is none, and faults', async () => {
    const docker = await engine((req, res) => {
      const gone = req.url!.includes('gone');
      res.writeHead(gone ? 404 : 200);
      res.end(
        gone ? '{"message":"no such container"}' : req.url!.includes('_ping') ? 'OK' : '{"Id":"a","State":{"Pid":7}}',
      );
    });
    expect((await docker.getContainer('a').inspect()).State.Pid).toBe(7);
    expect(String(await docker.ping())).toBe('OK');
    const fault = await docker
      .getContainer('gone')
      .inspect()
      .catch((e: unknown) => e);
    expect(fault).toMatchObject({
      statusCode: 404,
      reason: 'no such container',
      json: { message: 'no such container' },
    });
    expect(engineError(fault).message).toBe('The Docker engine answered 404: no such container');
    await expect(docker.pull('gone')).rejects.toMatchObject({ statusCode: 404 });
  });

  it.each([
    ['an answer', 200, (d: Docker) => d.getContainer('a').inspect()],
    ['a fault', 500, (d: Docker) => d.getContainer('a').inspect()],
    ['the fault of a stream', 500, (d: Docker) => d.pull('a')],
  ])('that sends %s without end is heard for 4 MB', async (_, status, ask) => {
    const { answer, over } = endless(status),
      docker = await engine(answer);
    await expect(ask(docker)).rejects.toThrow(/more than 4 MB/);
    expect(await over).toBeLessThan(32 << 20);
  });

  it('that answers with lists within lists is not parsed', async () => {
    const docker = await engine((_, res) => res.end('['.repeat(1 << 20)));
    await expect(docker.listContainers()).rejects.toThrow(/more than 64 lists and objects/);
  });

  it('that is silent after the first bytes of an answer is given up with the signal', async () => {
    const docker = await engine((_, res) => {
      res.write('{');
    });
    const stop = new AbortController(),
      asked = docker.getContainer('a').inspect({ abortSignal: stop.signal } as object);
    const refused = expect(asked).rejects.toMatchObject({ name: 'AbortError' });
    setTimeout(() => stop.abort(), 50);
    await refused;
  });

  it('streams an answer that is longer than that limit', async () => {
    const docker = await engine((_, res) =>
      Readable.from(Array.from({ length: 20 }, () => Buffer.alloc(1 << 20))).pipe(res),
    );
    let bytes = 0;
    for await (const d of (await docker.getContainer('a').export()) as AsyncIterable<Buffer>) bytes += d.length;
    expect(bytes).toBe(20 << 20);
  });
});

describe('the progress of an engine', () => {
  const lines = async (...said: string[]): Promise<EngineLine[]> => {
    const all: EngineLine[] = [];
    for await (const l of engineLines(Readable.from(said.map((s) => Buffer.from(s))))) all.push(l);
    return all;
  };
  it('keeps only the known fields, and only where they are texts', async () => {
    expect(await lines('{"stream":"a', '","aux":{"ID":1},"status":7}\n\n{"error":"no"}')).toEqual([
      { stream: 'a' },
      { error: 'no' },
    ]);
  });
  it.each([
    ['a line without end', 'x'.repeat(300_000), /more than 262144 bytes/],
    ['lists within lists', `${'['.repeat(1000)}\n`, /more than 16 lists/],
    ['no JSON', 'boo\n', /cannot be read/],
    ['no object', '7\n', /no JSON object/],
  ])('is not read when it is %s', async (_, said, why) => {
    await expect(lines(said)).rejects.toMatchObject({
      kind: 'desktop.image',
      message: expect.stringMatching(why) as string,
    });
  });
});
