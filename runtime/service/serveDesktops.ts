import { chooseProvider, desktopsOf, specOf } from '../cluster/provide.js';
import { pngOf } from '../data/store/png.js';
import type { ProviderChoice, Size } from '../domain/index.js';
import { serveOsworld, type Served } from '../gateway/osworld/serve.js';
import { openAssets } from '../tasks/index.js';

export type { Served };

/** Desktops of an image for other programs, through OSWorld's API. */
export async function serveDesktops(o: {
  readonly provider: ProviderChoice;
  readonly image: string;
  readonly screen: Size | undefined;
  readonly accessibility: boolean;
  readonly count: number;
  readonly host: string | undefined;
  readonly port: number;
  readonly token: string | undefined;
  /** Folder of what clients may have desktops download. */
  readonly assets: string | undefined;
  readonly onLine: (line: string) => void;
  /** Ends the start, which then rejects with `cancelled`. */
  readonly signal: AbortSignal;
}): Promise<Served> {
  const config = desktopsOf(o.image, { provider: o.provider, count: o.count, ...(o.screen && { screen: o.screen }) });
  return serveOsworld({
    provider: await chooseProvider(config),
    spec: specOf(config, { a11y: o.accessibility }),
    count: o.count,
    port: o.port,
    host: o.host,
    token: o.token,
    picture: pngOf,
    assets: o.assets === undefined ? undefined : await openAssets(o.assets),
    onLine: o.onLine,
    signal: o.signal,
  });
}
