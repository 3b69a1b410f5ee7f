import * as m from '../protocol/methods.js';
import type { DesktopRow } from '../protocol/types.js';
import { buildDesktop, imageRows } from './desktopImage.js';
import { schemas, type Handlers } from './params.js';
import type { Studio } from './studio.js';
import { DEFAULT_IMAGE, ServiceError } from '../domain/index.js';

/** Shortest time between two `desktop/changed` of one desktop. */
const CHANGED_MS = 250;

/** desktop/list, restart, images, build; and `desktop/changed` while there are desktops. */
export function desktopHandlers(h: Handlers, s: Studio): void {
  h.on(m.listDesktops, schemas.empty, () => {
    const { session } = s;
    return {
      desktops: [
        ...(session ? session.desktops.rows().map((r): DesktopRow => ({ ...r, run: session.run })) : []),
        ...s.own.rows(),
      ],
    };
  });
  h.on(m.restartDesktop, schemas.desktop, (p) => {
    if (!s.session?.desktops.restart(p.desktop) && !s.own.registryOf(p.desktop)?.restart(p.desktop))
      throw new ServiceError(
        'not.found',
        `There is no desktop ${p.desktop}.`,
        'Choose one from the list of desktops; it may have been replaced.',
      );
    return {};
  });
  h.on(m.listImages, schemas.empty, async () => ({ images: await imageRows() }));
  h.on(m.buildDesktop, schemas.buildDesktop, (p, c) =>
    s.job('A desktop is being built.', c.signal, (signal) =>
      buildDesktop({
        provider: p.provider ?? 'auto',
        image: p.image ?? DEFAULT_IMAGE,
        force: p.force ?? false,
        signal,
        onProgress: (x) => {
          c.notify(m.buildProgress.method, {
            phase: x.phase,
            message: x.message,
            fraction: x.fraction,
          });
        },
      }),
    ),
  );
  const tell = coalesce<DesktopRow | undefined>(CHANGED_MS, (desktop, row) => {
    s.broadcast({ method: 'desktop/changed', params: { desktop, row } });
  });
  s.own.onChange(tell);
  s.onSession((session) => {
    session?.desktops.onChange((desktop, row) => {
      tell(desktop, row && { ...row, run: session.run });
    });
  });
}

/** Tells the first value of a key at once, and after that the newest one every `ms`, as long as there is a new one. */
export function coalesce<T>(ms: number, tell: (key: string, value: T) => void): (key: string, value: T) => void {
  const held = new Map<string, { value?: T; due: boolean }>();
  const wait = (key: string): void => {
    setTimeout(() => {
      const h = held.get(key)!;
      if (!h.due) {
        held.delete(key);
        return;
      }
      h.due = false;
      tell(key, h.value as T);
      wait(key);
    }, ms).unref();
  };
  return (key, value) => {
    const h = held.get(key);
    if (h) {
      h.value = value;
      h.due = true;
      return;
    }
    held.set(key, { due: false });
    tell(key, value);
    wait(key);
  };
}
