import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

export const digestOf = (b: Buffer): string => `sha256:${createHash('sha256').update(b).digest('hex')}`;
export interface ImageManifest {
  readonly config: { readonly digest: string };
  readonly layers: readonly { readonly digest: string; readonly size: number }[];
}

/** A small image registry on loopback: the part of its protocol (v2) that a push needs, kept in memory. */
export class Registry {
  /** `name:password`; without, anybody may push. */
  login: string | undefined;
  /** Blobs are refused with these words. */
  denies: string | undefined;
  readonly blobs = new Map<string, Buffer>();
  /** By `repository:tag`. */
  readonly manifests = new Map<string, ImageManifest>();
  readonly #server: Server;
  readonly #uploads = new Map<string, Buffer[]>();

  private constructor() {
    this.#server = createServer((req, res) => {
      this.#answer(req, res).catch((e: unknown) => {
        res.destroy(e as Error);
      });
    });
  }
  static async open(): Promise<Registry> {
    const r = new Registry();
    r.#server.listen(0, '127.0.0.1');
    await once(r.#server, 'listening');
    return r;
  }
  /** As image references name it. */
  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }
  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((done) => {
      this.#server.close(done);
    });
  }

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const url = new URL(req.url!, 'http://x'),
      body = await buffer(req);
    const wanted = this.login && `Basic ${Buffer.from(this.login).toString('base64')}`;
    if (wanted && req.headers.authorization !== wanted) {
      res.setHeader('www-authenticate', 'Basic realm="test"');
      return refuse(res, 401, 'UNAUTHORIZED', 'authentication required');
    }
    if (url.pathname === '/v2/') return end(res, 200);
    const [, repo, kind, rest] = /^\/v2\/(.+)\/(blobs|manifests)\/(.*)$/.exec(url.pathname) ?? [];
    if (kind === 'manifests') return this.#manifest(req, res, `${repo}:${rest}`, body);
    if (rest?.startsWith('uploads/')) return this.#upload(req, res, url, repo!, rest.slice('uploads/'.length), body);
    const blob = this.blobs.get(rest ?? '');
    return blob ? end(res, 200, { 'content-length': blob.length }) : end(res, 404);
  }

  #upload(req: IncomingMessage, res: ServerResponse, url: URL, repo: string, id: string, body: Buffer): void {
    if (this.denies !== undefined) return refuse(res, 403, 'DENIED', this.denies);
    const at = req.method === 'POST' ? randomUUID() : id,
      parts = this.#uploads.get(at) ?? [];
    this.#uploads.set(at, parts);
    if (body.length > 0) parts.push(body);
    const all = Buffer.concat(parts),
      digest = url.searchParams.get('digest');
    if (req.method === 'PUT' && digest !== null) {
      if (digestOf(all) !== digest) return refuse(res, 400, 'DIGEST_INVALID', 'it is another blob');
      this.blobs.set(digest, all);
      return end(res, 201, { 'docker-content-digest': digest });
    }
    return end(res, 202, {
      location: `/v2/${repo}/blobs/uploads/${at}`,
      'docker-upload-uuid': at,
      range: `0-${Math.max(0, all.length - 1)}`,
    });
  }

  #manifest(req: IncomingMessage, res: ServerResponse, name: string, body: Buffer): void {
    if (req.method !== 'PUT') return end(res, 404);
    this.manifests.set(name, JSON.parse(body.toString('utf8')) as ImageManifest);
    return end(res, 201, { 'docker-content-digest': digestOf(body) });
  }
}

const end = (res: ServerResponse, code: number, headers: Record<string, string | number> = {}): void => {
  res.writeHead(code, { 'docker-distribution-api-version': 'registry/2.0', ...headers });
  res.end();
};
const refuse = (res: ServerResponse, status: number, code: string, message: string): void => {
  res.writeHead(status, { 'content-type': 'application/json' });
  res.end(JSON.stringify({ errors: [{ code, message }] }));
};
