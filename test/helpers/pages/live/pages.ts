import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import type { ControlState } from '../../../../runtime/protocol/types.js';
import type { RealBrowser } from '../browser.js';
import { bundle, type Bundle } from '../page.js';
import { FrameFolder, height, width } from '../screens.js';
import { Desk } from './desk.js';
import { controlState } from './samples.js';

export const record = (o: Partial<ControlState> = {}): ControlState => controlState({ purpose: 'record', ...o });
export const textOf = (d: Desk, selector: string): Promise<string> =>
  d.page.page.evaluate<string>(`document.querySelector('${selector}')?.textContent ?? ''`);
export const press = (d: Desk, name: string | RegExp): Promise<void> =>
  d.page.page.getByRole('button', { name }).click();

export interface LivePages {
  show(o?: Parameters<typeof Desk.open>[2], picture?: boolean): Promise<Desk>;
  /** PNG of the screen, base64. */
  readonly list: string;
  readonly bundle: Bundle;
}
/** Within `describe`: the live page over a fake daemon, one page at a time, which must end without a fault. */
export function livePages({ browser }: RealBrowser): LivePages {
  let b: Bundle, dir: string, list: string, open: Desk | undefined;
  beforeAll(async () => {
    b = await bundle('live');
    dir = await mkdtemp(join(tmpdir(), 'live-'));
    const { hash } = await new FrameFolder(dir).add('list');
    list = (await readFile(join(dir, hash.slice(0, 2), `${hash}.png`))).toString('base64');
  });
  afterEach(async () => {
    const faults = open?.page.faults ?? [];
    open?.hold?.go();
    await open?.page.close();
    open = undefined;
    expect(faults).toEqual([]);
  });
  afterAll(async () => {
    await browser.close();
    await rm(dir, { recursive: true, force: true });
  });
  return {
    show: async (o = {}, picture = true) => {
      open = await Desk.open(browser, b, o);
      if (picture) {
        await open.picture(list, width, height);
        if (o?.state) await open.page.until("!document.querySelector('.live-panel').hidden");
      }
      return open;
    },
    get list() {
      return list;
    },
    get bundle() {
      return b;
    },
  };
}
