import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseAction, parseToHost } from '../../../extension/panels/messages.js';
import { restoredInput } from '../../../extension/panels/panelKinds.js';
import { pageCommands, pageMethods, type PageKind } from '../../../webview/protocol.js';

const kinds = Object.keys(pageMethods) as PageKind[],
  boot = 'b1';

/** Sources of all pages but the list of what they may say. */
const sources = readdirSync('webview', { recursive: true, encoding: 'utf8' })
  .filter((f) => f.endsWith('.ts') && f !== 'protocol.ts')
  .map((f) => readFileSync(join('webview', f), 'utf8'))
  .join('\n');

describe('what a page says', () => {
  it('may be nothing that no page ever says', () => {
    const all = [...new Set<string>([...kinds.flatMap((kind) => [...pageMethods[kind]]), ...pageCommands])];
    // `annotation/${kind}`: undo and redo.
    const says = (said: string): boolean =>
      sources.includes(`'${said}'`) || sources.includes(`\`${said.split('/')[0]}/\${`);
    expect(all.filter((said) => !says(said))).toEqual([]);
  });
  it('requests pass only as far as their page may ask', () => {
    for (const kind of kinds) {
      for (const method of pageMethods[kind])
        expect(
          parseToHost(
            {
              type: 'request',
              boot,
              id: 1,
              method,
              params: method === 'control/input' ? { session: 's', events: [] } : { run: '/r' },
            },
            kind,
          ),
          `${kind} ${method}`,
        ).toMatchObject({ method });
      for (const method of [
        'run/stop',
        'run/start',
        'daemon/shutdown',
        'machine/diagnostics',
        'desktop/restart',
        '__proto__',
        'toString',
      ])
        expect(
          parseToHost({ type: 'request', boot, id: 1, method, params: {} }, kind),
          `${kind} ${method}`,
        ).toBeUndefined();
    }
  });
  it('a page, a link or a chart to share is what it says, or nothing', () => {
    for (const a of [
      { action: 'exportPage' },
      { action: 'exportPage', run: '/r', rollout: 'r-1' },
      { action: 'copyLink', run: '/r', rollout: 'r-1', step: 3 },
      { action: 'saveChart', name: 'Loss', png: 'iVBORw0K' },
    ])
      expect(parseAction({ ...a, more: 1 })).toEqual(a);
    for (const a of [
      { action: 'exportPage', run: 7 },
      { action: 'copyLink' },
      { action: 'copyLink', run: '/r', step: -1 },
      { action: 'saveChart', name: 'Loss', png: '<svg onload=alert(1)>' },
      { action: 'saveChart', name: 'Loss', png: 'A'.repeat(9 << 20) },
      { action: 'saveChart', png: 'AAAA' },
    ])
      expect(parseAction(a), JSON.stringify(a).slice(0, 80)).toBeUndefined();
  });
  it('parameters are one object of bounded size', () => {
    const ask = (params: unknown): unknown =>
      parseToHost({ type: 'request', boot, id: 1, method: 'run/get', params }, 'dashboard');
    const ring: Record<string, unknown> = {};
    ring['self'] = ring;
    expect([ask(null), ask([]), ask('x'), ask({ run: 'x'.repeat(70_000) }), ask(ring)]).toEqual(
      Array(5).fill(undefined),
    );
  });
  it('events are asked for by known types', () => {
    expect(
      parseToHost(
        { type: 'subscribe', boot, run: '/r', sinceSeq: 3, types: ['step', 'ended'], rollout: 'r-1', extra: 1 },
        'inspector',
      ),
    ).toEqual({ type: 'subscribe', boot, run: '/r', sinceSeq: 3, types: ['step', 'ended'], rollout: 'r-1' });
    expect(
      [
        { sinceSeq: -1 },
        { sinceSeq: 1.5 },
        { sinceSeq: 0, types: ['all'] },
        { sinceSeq: 0, types: 'step' },
        { sinceSeq: 0, run: '' },
      ].map((x) => parseToHost({ type: 'subscribe', boot, run: '/r', ...x }, 'inspector')),
    ).toEqual(Array(5).fill(undefined));
  });
  it('commands are those of the list, arguments text', () => {
    expect(parseAction({ action: 'command', command: 'pause', argument: '/r' })).toEqual({
      action: 'command',
      command: 'pause',
      argument: '/r',
    });
    expect([
      parseAction({ action: 'command', command: 'workbench.action.terminal.new' }),
      parseAction({ action: 'command', command: 'pause', argument: { path: 1 } }),
      parseAction({ action: 'delete' }),
      parseAction({ action: 'copy', text: 5 }),
    ]).toEqual(Array(4).fill(undefined));
  });
  it('what a person did is looked at event by event', () => {
    const send = (...events: unknown[]): unknown =>
      parseToHost({ type: 'request', boot, id: 1, method: 'control/input', params: { session: 's1', events } }, 'live');
    const good = [
      { type: 'move', at: 1.5, x: 3, y: 4 },
      { type: 'button', at: 2, button: 'left', down: true, x: 0, y: 0 },
      { type: 'wheel', at: 3, dx: 0, dy: -3, x: 1, y: 1 },
      { type: 'key', at: 4, key: 'ArrowUp', down: false },
      { type: 'text', at: 5, text: 'é' },
    ];
    expect(send(...good)).toMatchObject({ method: 'control/input', params: { session: 's1', events: good } });
    const bad = [
      { type: 'move', at: 1, x: -1, y: 0 },
      { type: 'move', at: 1, x: 1.5, y: 0 },
      { type: 'move', at: NaN, x: 1, y: 1 },
      { type: 'move', at: 1, x: 1e9, y: 0 },
      { type: 'button', at: 1, button: 'back', down: true, x: 0, y: 0 },
      { type: 'key', at: 1, key: 'a'.repeat(65), down: true },
      { type: 'key', at: 1, key: 'a' },
      { type: 'shell', at: 1 },
      { type: '__proto__', at: 1 },
      { type: 'text', at: 1, text: 'x', extra: 1 },
      null,
      'x',
    ];
    expect(bad.map((e) => send(e))).toEqual(bad.map(() => undefined));
    expect(send(...Array.from({ length: 2001 }, () => good[0]))).toBeUndefined();
    expect(
      parseToHost({ type: 'request', boot, id: 1, method: 'control/input', params: { session: 's1' } }, 'live'),
    ).toBeUndefined();
  });
  it('an edit may carry long texts, a query may not', () => {
    const long = { run: '/r', rollout: 'x', text: 'x'.repeat(300_000) };
    expect(
      parseToHost({ type: 'request', boot, id: 1, method: 'annotation/edit', params: long }, 'inspector'),
    ).toBeDefined();
    expect(
      parseToHost({ type: 'request', boot, id: 1, method: 'annotation/get', params: long }, 'inspector'),
    ).toBeUndefined();
  });
  it('the next of a queue is asked for by name', () => {
    expect(parseAction({ action: 'annotate', run: '/r', rollout: 'x', extra: 1 })).toEqual({
      action: 'annotate',
      run: '/r',
      rollout: 'x',
    });
    expect([parseAction({ action: 'moved', rollout: 'x', run: '/other' }), parseAction({ action: 'moved' })]).toEqual([
      { action: 'moved', rollout: 'x' },
      undefined,
    ]);
    expect([
      parseAction({ action: 'annotate', run: '/r' }),
      parseAction({ action: 'annotate', run: '', rollout: 'x' }),
    ]).toEqual([undefined, undefined]);
  });
  it('nothing but declared fields comes through', () => {
    expect(
      parseAction({ action: 'openTrajectory', run: '/r', rollout: 'x', step: 2, beside: 'yes', command: 'evil' }),
    ).toEqual({ action: 'openTrajectory', run: '/r', rollout: 'x', step: 2 });
  });
  it('faults are cut, not refused', () => {
    expect(parseToHost({ type: 'fault', boot, message: 'x'.repeat(20_000) }, 'live')).toMatchObject({
      message: 'x'.repeat(10_000),
    });
  });
  it("never throws, and never lets a method through that is not the page's", () => {
    const value = fc.anything({ maxDepth: 3, withNullPrototype: true });
    const message = fc.record(
      {
        type: fc.constantFrom('ready', 'request', 'cancel', 'subscribe', 'action', 'title', 'fault', 'x'),
        boot: fc.oneof(fc.constant(boot), value),
        id: fc.oneof(fc.nat(), value),
        method: fc.oneof(fc.constantFrom('run/get', 'run/stop', 'trajectory/get'), value),
        params: value,
        run: value,
        sinceSeq: value,
        types: value,
        action: value,
        title: value,
        message: value,
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(message, value), fc.constantFrom(...kinds), (m, kind) => {
        const r = parseToHost(m, kind);
        return (
          r === undefined ||
          (typeof r.boot === 'string' &&
            (r.type !== 'request' || (pageMethods[kind] as readonly string[]).includes(r.method)))
        );
      }),
    );
  });
});

describe('what a restored page says it showed', () => {
  it('is taken when it fits its panel', () => {
    expect(
      restoredInput({ input: { kind: 'inspector', run: '/r', rollout: 'x', step: 4 }, scroll: 3 }, 'inspector'),
    ).toEqual({ kind: 'inspector', run: '/r', rollout: 'x', step: 4 });
    expect(restoredInput({ input: { kind: 'live', desktop: 'd' } }, 'live')).toEqual({ kind: 'live', desktop: 'd' });
    expect(restoredInput({ input: { kind: 'live', desktop: 'd', session: 's' } }, 'live')).toEqual({
      kind: 'live',
      desktop: 'd',
      session: 's',
    });
    const tried = { kind: 'try', roots: ['/runs'], files: [], base: '/runs' };
    expect(restoredInput({ input: { ...tried, run: '/r', version: 4, session: 's', desktop: 'd' } }, 'try')).toEqual({
      ...tried,
      run: '/r',
      version: 4,
      session: 's',
      desktop: 'd',
    });
    // Neither without the other, and no provider that there is not.
    expect(restoredInput({ input: { ...tried, session: 's', provider: 'x' } }, 'try')).toEqual(tried);
    expect(restoredInput({ input: { ...tried, roots: [1] } }, 'try')).toBeUndefined();
    expect(
      restoredInput(
        { input: { kind: 'inspector', run: '/r', rollout: 'x', annotate: true, queue: true } },
        'inspector',
      ),
    ).toMatchObject({ annotate: true, queue: true });
  });
  it('is refused when it does not', () => {
    expect(
      [undefined, null, {}, { input: { kind: 'dashboard' } }, { input: { kind: 'live', desktop: 'd' } }].map((s) =>
        restoredInput(s, 'dashboard'),
      ),
    ).toEqual(Array(5).fill(undefined));
    expect(restoredInput({ input: { kind: 'inspector', rollout: 'x' } }, 'inspector')).toBeUndefined();
  });
  it('carries no document: that is read anew', () => {
    expect(
      restoredInput({ input: { kind: 'inspector', run: '/r', rollout: 'x', document: { steps: [] } } }, 'inspector'),
    ).not.toHaveProperty('document');
  });
});
