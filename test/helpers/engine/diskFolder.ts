import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { deserialize, serialize } from 'node:v8';
import { weightsFolder } from '../../../runtime/trainer/engine/state.js';
import type { Saved } from './tinker.js';

/** The reference server's disk as a folder laid out like the engine's own: what is there outlives the process. */
export class DiskFolder extends Map<string, Saved> {
  readonly #dir: string;

  constructor(dir: string) {
    super();
    this.#dir = dir;
    const models = join(dir, 'models');
    for (const model of existsSync(models) ? readdirSync(models) : [])
      for (const kind of ['weights', 'sampler_weights'])
        for (const name of existsSync(join(models, model, kind)) ? readdirSync(join(models, model, kind)) : [])
          if (!name.startsWith('.')) this.#read(join(models, model, kind, name));
  }
  #read(folder: string): void {
    const { uri, saved } = deserialize(readFileSync(join(folder, 'weights.v8'))) as { uri: string; saved: Saved };
    super.set(uri, saved);
  }

  override set(uri: string, saved: Saved): this {
    const to = weightsFolder(this.#dir, uri)!,
      fresh = join(dirname(to), `.new-${process.pid}`),
      meta = join(dirname(dirname(to)), 'model.json');
    mkdirSync(fresh, { recursive: true });
    writeFileSync(join(fresh, 'weights.v8'), serialize({ uri, saved }));
    writeFileSync(join(fresh, 'engine.json'), '{}');
    rmSync(to, { recursive: true, force: true });
    renameSync(fresh, to);
    if (!existsSync(meta)) writeFileSync(meta, '{}');
    return super.set(uri, saved);
  }
  /** What the folder holds now: a model's weights may have been deleted from outside. */
  override get(uri: string): Saved | undefined {
    const folder = weightsFolder(this.#dir, uri);
    return folder !== undefined && existsSync(join(folder, 'weights.v8')) ? super.get(uri) : undefined;
  }
  override delete(uri: string): boolean {
    const folder = weightsFolder(this.#dir, uri);
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    return super.delete(uri);
  }
}
