import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { RunConfig } from '../config/index.js';
import { locateModel } from './backends/ownEngine.js';
import { locatePools } from './poolSources.js';

/**
 * A run file's folders as absolute paths, so that they are the same for whoever resumes or looks at the run, wherever that
 * is. A relative one is looked up in each of `beside` (that of the run file first); one that is nowhere is expected in the
 * first. `store`: the folder of runs, where pools are looked for before.
 */
export function locate<C extends RunConfig>(c: C, beside: readonly string[], store?: string): C {
  const folder = (f: string): string =>
      beside.map((d) => resolve(d, f)).find(existsSync) ?? resolve(beside[0] ?? '', f),
    { dir, assets } = c.tasks,
    { from } = c.warmStart,
    { imageExtra } = c.desktops,
    located = {
      ...c,
      tasks: {
        ...c.tasks,
        ...(dir === undefined ? {} : { dir: folder(dir) }),
        ...(assets === undefined ? {} : { assets: folder(assets) }),
      },
      desktops: { ...c.desktops, ...(imageExtra ? { imageExtra: folder(imageExtra) } : {}) },
      warmStart: { ...c.warmStart, ...(from === undefined ? {} : { from: folder(from) }) },
    };
  return {
    ...located,
    ...locateModel(locatePools(located, [...(store === undefined ? [] : [store]), ...beside]), beside),
  };
}
