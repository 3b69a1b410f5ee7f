import { createHash } from 'node:crypto';
import { random, errorCode } from '../../../runtime/domain/index.js';
import { FrameAppender, type AppenderOptions } from '../../../runtime/data/store/frameAppender.js';
import { compact, type CompactOptions } from '../../../runtime/data/store/frameCompaction.js';
import { FramePacks } from '../../../runtime/data/store/framePacks.js';
import { DiskRoom } from '../../../runtime/data/store/room.js';

/** A frame of packs: any bytes, named by their hash. */
export interface Content {
  readonly hash: string;
  readonly bytes: Buffer;
}
export function content(seed: number, length: number): Content {
  const r = random(seed),
    bytes = Buffer.from(Array.from({ length }, () => r.int(256)));
  return { hash: createHash('sha256').update(bytes).digest('hex'), bytes };
}

/** A folder of packs as one process has it. */
export class OpenPacks {
  readonly packs: FramePacks;
  readonly appender: FrameAppender;
  constructor(dir: string, o: Partial<AppenderOptions> = {}) {
    this.packs = new FramePacks(dir);
    this.appender = new FrameAppender(this.packs, { packBytes: 1000, sync: false, room: new DiskRoom(), ...o });
  }
  put({ hash, bytes }: Content): Promise<void> {
    return this.appender.append(hash, bytes);
  }
  /** What is read of it; undefined where it is not there, or damaged. */
  async get(hash: string): Promise<Buffer | undefined> {
    try {
      return await this.packs.read(hash);
    } catch (e) {
      if (errorCode(e) === 'EDAMAGED') return undefined;
      throw e;
    }
  }
  async remove(hashes: readonly string[]): Promise<void> {
    await this.packs.known();
    const pack = (h: string): number | undefined => this.packs.find(h)?.pack;
    for (const n of new Set(hashes.map(pack)))
      if (n !== undefined)
        await this.packs.remove(
          n,
          hashes.filter((h) => pack(h) === n),
        );
  }
  compact(o: Partial<CompactOptions> = {}): Promise<void> {
    return compact(this.packs, this.appender, { share: 0.5, restMs: 0, ...o });
  }
}
