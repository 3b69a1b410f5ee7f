import { afterEach, describe, expect, it, vi } from 'vitest';
import { Emitter } from '../../../extension/emitter.js';
import { followAbandoned } from '../../../extension/model/abandoned.js';
import type { ControlState } from '../../../runtime/protocol/types.js';
import { control } from '../../helpers/extension/rows.js';

function following() {
  const abandoned = new Emitter<ControlState>(),
    changed = new Emitter<ControlState | undefined>(),
    tabs = new Emitter<void>(),
    now = new Map<string, ControlState>(),
    gone: string[] = [],
    pages = { restoring: false, shown: [] as string[] };
  const own = followAbandoned(
    { get: (id) => now.get(id ?? ''), onAbandoned: abandoned.on, onChange: changed.on },
    { show: (s) => pages.shown.includes(s), restoring: () => pages.restoring, onChange: tabs.on },
    (s) => gone.push(s.session),
  );
  const set = (s: ControlState): void => {
    now.set(s.session, s);
    changed.fire(s);
  };
  return {
    gone,
    pages,
    own,
    set,
    tabs,
    now,
    changed,
    abandon: (session: string): void => {
      const s = control({ session, abandonedAt: 5000 });
      set(s);
      abandoned.fire(s);
    },
  };
}

afterEach(() => {
  vi.useRealTimers();
});

describe('a session whose page is gone', () => {
  it('is said at once where no page is being restored', () => {
    const f = following();
    f.abandon('s1');
    f.tabs.fire();
    expect(f.gone).toEqual(['s1']);
  });
  it('is said when what was restored is another page, however long that took, and only once', () => {
    const f = following();
    f.pages.restoring = true;
    f.abandon('s1');
    f.tabs.fire();
    expect(f.gone).toEqual([]);
    f.pages.shown.push('s2');
    f.pages.restoring = false;
    f.tabs.fire();
    f.tabs.fire();
    expect(f.gone).toEqual(['s1']);
  });
  it('is said when a page is restored for ever', () => {
    vi.useFakeTimers();
    const f = following();
    f.pages.restoring = true;
    f.abandon('s1');
    vi.advanceTimersByTime(14_999);
    expect(f.gone).toEqual([]);
    vi.advanceTimersByTime(1);
    f.tabs.fire();
    expect(f.gone).toEqual(['s1']);
    expect(vi.getTimerCount()).toBe(0);
  });
  it.each([
    ['its own page was restored', (f: ReturnType<typeof following>) => f.pages.shown.push('s1')],
    ['a page took it again', (f: ReturnType<typeof following>) => f.set(control({ session: 's1' }))],
    [
      'it ended meanwhile',
      (f: ReturnType<typeof following>) => {
        f.now.delete('s1');
        f.changed.fire(undefined);
      },
    ],
  ])('is not said where %s', (_why, happens) => {
    const f = following();
    f.pages.restoring = true;
    f.abandon('s1');
    happens(f);
    f.pages.restoring = false;
    f.tabs.fire();
    f.pages.shown.length = 0;
    f.tabs.fire();
    expect(f.gone).toEqual([]);
  });
  it('is not said any more after the end', () => {
    const f = following();
    f.pages.restoring = true;
    f.abandon('s1');
    f.own.dispose();
    f.pages.restoring = false;
    f.tabs.fire();
    expect(f.gone).toEqual([]);
  });
});
