import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Disposables } from '../../../extension/dispose.js';
import { buttonsFor, explain, wireError } from '../../../extension/errorWords.js';
import { commands, contextKeys } from '../../../extension/ids.js';
import { parseLine } from '../../../extension/logLine.js';
import { keysOf, type Facts } from '../../../extension/model/contextKeys.js';
import {
  clean,
  filterWords,
  isEmpty,
  parseFilter,
  parseVersions,
  versionsText,
} from '../../../extension/model/filter.js';
import { machineOf } from '../../../extension/model/machine.js';
import { redact, withoutTargets } from '../../../extension/model/redact.js';
import {
  homeOf,
  inFolder,
  isListed,
  rootsOf,
  rootsThere,
  storeDirOf,
  withStoreDir,
} from '../../../extension/model/roots.js';
import { panelFolders, panelKey } from '../../../extension/panels/panelKinds.js';
import { throttle } from '../../../extension/throttle.js';
import type { HelloResult } from '../../../runtime/protocol/requests.js';
import { run } from '../../helpers/extension/rows.js';

describe('context keys', () => {
  const facts = (o: Partial<Facts> = {}): Facts => ({
    daemon: 'ready',
    runs: [],
    active: undefined,
    selected: undefined,
    shown: undefined,
    desktops: 0,
    filtered: false,
    machine: 'unknown',
    sessions: 0,
    attached: false,
    ...o,
  });
  it('are all written, also when there is nothing', () => {
    expect([...Object.keys(keysOf(facts())), contextKeys.runFileActive].sort()).toEqual(
      Object.values(contextKeys).sort(),
    );
  });
  it('tell running, paused and stopping apart', () => {
    const keys = (state: 'running' | 'paused' | 'stopping'): unknown[] => {
      const k = keysOf(facts({ active: run({ state }) }));
      return [k[contextKeys.runActive], k[contextKeys.runPaused], k[contextKeys.runStopping]];
    };
    expect([keys('running'), keys('paused'), keys('stopping')]).toEqual([
      [true, false, false],
      [true, true, false],
      [true, false, true],
    ]);
  });
});

describe('menus of a dashboard', () => {
  it('steer a run only from its own page', () => {
    const key = (shown: string | undefined): unknown =>
      keysOf({
        daemon: 'ready',
        runs: [],
        active: run({ run: '/w/a' }),
        selected: '/w/b',
        shown,
        desktops: 0,
        filtered: false,
        machine: 'ok',
        sessions: 0,
        attached: false,
      })[contextKeys.dashboardOfActiveRun];
    expect([key('/w/a'), key('/w/b'), key(undefined)]).toEqual([true, false, false]);
  });
});

describe('where runs are', () => {
  it('of a runtime elsewhere, beside those that are active there, and in no folder of this machine', () => {
    const hello = { storage: '/studio/runtime', activeRuns: ['/runs/a'] } as unknown as HelloResult;
    expect(rootsThere(hello, ['/runs/a', '/other/b'])).toEqual(['/studio/runtime/runs', '/runs', '/other']);
    expect(rootsThere(undefined, [])).toEqual([]);
  });
  it('in the folder of the workspace, else in the storage', () => {
    expect(homeOf({ homes: ['/w/runs', '/v/runs'], storage: '/s' })).toBe('/w/runs');
    expect(homeOf({ homes: [], storage: '/s' })).toBe('/s/runs');
    expect(['runs', 'runs/', './a/b', '/data/runs'].map((runs) => inFolder('/w', runs))).toEqual([
      '/w/runs',
      '/w/runs',
      '/w/a/b',
      '/data/runs',
    ]);
  });
  it('and a run under way elsewhere is listed once', () => {
    expect(
      rootsOf({
        homes: ['/w/runs', '/v/runs'],
        storage: '/s',
        extra: ['/x'],
        active: ['/w/runs/a', '/other/b', '/x'],
      }),
    ).toEqual(['/w/runs', '/v/runs', '/s/runs', '/x', '/other/b']);
  });
  it('and one in a folder below a folder of runs, which is not searched, too', () => {
    const of = (active: readonly string[]): string[] =>
      rootsOf({ homes: ['/w/runs'], storage: '/s', extra: [], active });
    expect(of(['/w/runs/deep/c'])).toEqual(['/w/runs', '/s/runs', '/w/runs/deep/c']);
    expect(['/w/runs/a', '/w/runs', '/w/runs/deep/c', '/w/runs-2/a'].map((r) => isListed(['/w/runs'], r))).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
  it('and of many that were under way elsewhere the newest are listed: a request takes 64 roots', () => {
    const active = Array.from({ length: 100 }, (_, i) => `/other-${i}/r`),
      roots = rootsOf({ homes: ['/w/runs'], storage: '/s', extra: [], active });
    expect([roots.length, roots.at(-1)]).toEqual([18, '/other-99/r']);
  });
  it("and in the folder that a run file's store.dir names", () => {
    expect(storeDirOf(withStoreDir('{}', '/w/runs'), '/w')).toBe('/w/runs');
    expect(storeDirOf('{"store":{"dir":"../big/runs/"}}', '/w')).toBe('/big/runs');
    for (const text of ['{ not json', '[]', 'null', '{}', '{"store":7}', '{"store":{"dir":7}}'])
      expect(storeDirOf(text, '/w')).toBeUndefined();
  });
  it("a run file's own folder wins, and a broken file is left to the runtime", () => {
    expect(JSON.parse(withStoreDir('{"preset":"quickstart"}', '/w/runs'))).toEqual({
      preset: 'quickstart',
      store: { dir: '/w/runs' },
    });
    expect(JSON.parse(withStoreDir('{"store":{"keepCheckpoints":2}}', '/w/runs'))).toEqual({
      store: { keepCheckpoints: 2, dir: '/w/runs' },
    });
    for (const text of ['{"store":{"dir":"here"}}', '{ not json', '[]', '7'])
      expect(withStoreDir(text, '/w/runs')).toBe(text);
  });
});

describe('filter', () => {
  it('survives storing, whatever else is stored', () => {
    fc.assert(
      fc.property(fc.anything(), (x) => {
        const f = parseFilter(x);
        return JSON.stringify(parseFilter(JSON.parse(JSON.stringify(f)))) === JSON.stringify(f);
      }),
    );
    expect(
      parseFilter({
        outcome: ['success', 'won'],
        version: { min: 3, max: 'x' },
        family: '',
        text: 'a',
        tag: 5,
        assisted: 1,
      }),
    ).toEqual({ outcome: ['success'], version: { min: 3 }, text: 'a' });
    expect(parseFilter({ assisted: false })).toEqual({ assisted: false });
  });
  it('reads versions as people write them', () => {
    expect(['7', '3-9', '5-', '-4', '', ' 3 - 9 '].map(parseVersions)).toEqual([
      { min: 7, max: 7 },
      { min: 3, max: 9 },
      { min: 5 },
      { max: 4 },
      {},
      { min: 3, max: 9 },
    ]);
    expect(['x', '9-3', '1-2-3', '1.5'].map(parseVersions)).toEqual(Array(4).fill(undefined));
  });
  it('writes versions as it reads them', () => {
    fc.assert(
      fc.property(fc.option(fc.nat(99), { nil: undefined }), fc.option(fc.nat(99), { nil: undefined }), (min, max) => {
        fc.pre(min === undefined || max === undefined || min <= max);
        const v = { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) };
        expect(parseVersions(versionsText(v))).toEqual(v);
      }),
    );
  });
  it('empty parts filter nothing', () => {
    expect(isEmpty(clean({ outcome: [], family: '', version: {}, tag: '', text: '' }))).toBe(true);
  });
  it('is described in words', () => {
    expect(
      filterWords({ outcome: ['failure', 'error'], family: 'desk/form-one', version: { min: 3 }, tag: 'odd' }),
    ).toBe('failure, error · desk/form-one · version 3- · #odd');
    expect([true, false].map((assisted) => filterWords({ assisted }))).toEqual(['assisted', 'not assisted']);
  });
});

describe('faults', () => {
  class DaemonError extends Error {
    readonly kind = 'desktop.unavailable';
    readonly remedy = 'Start Docker.';
  }
  it('keep their kind and remedy, from wherever they come', () => {
    expect(wireError(new DaemonError('No engine answers'))).toEqual({
      kind: 'desktop.unavailable',
      message: 'No engine answers',
      remedy: 'Start Docker.',
    });
    expect(wireError(Object.assign(new Error('m'), { data: { kind: 'busy', remedy: 'Wait.' } }))).toMatchObject({
      kind: 'busy',
      remedy: 'Wait.',
    });
    expect(wireError({ kind: 'daemon.failed', message: 'm', remedy: 'r' })).toEqual({
      kind: 'daemon.failed',
      message: 'm',
      remedy: 'r',
    });
    expect(wireError(Object.assign(new Error('gone'), { code: 'ENOENT' })).kind).toBe('not.found');
    expect(wireError('text').kind).toBe('internal');
  });
  it('say what failed, why and what to do, without a stack', () => {
    const x = explain(new DaemonError('No engine answers'), 'start training');
    expect(x.message).toBe('DART Studio could not start training: No engine answers. Start Docker.');
    expect(x.buttons[0]!.command).toBe(commands.checkMachine);
  });
  it('cancelling is no fault', () => {
    expect(explain(new DOMException('x', 'AbortError'), 'a').silent).toBe(true);
    expect(explain(Object.assign(new Error('x'), { kind: 'cancelled', remedy: '' }), 'a').silent).toBe(true);
  });
  it('that need an act have a button for it', () => {
    for (const kind of [
      'desktop.unavailable',
      'desktop.image',
      'desktop.lost',
      'busy',
      'connection.lost',
      'daemon.failed',
      'daemon.stopped',
      'protocol.mismatch',
      'draining',
      'internal',
      'untrusted',
      'store.io',
    ])
      expect(buttonsFor(kind).length, kind).toBeGreaterThan(0);
  });
});

describe('throttle', () => {
  const clock = (): { later: (f: () => void, ms: number) => () => void; tick: () => void } => {
    const due: (() => void)[] = [];
    return {
      later: (f) => {
        due.push(f);
        return () => {
          const i = due.indexOf(f);
          if (i >= 0) due.splice(i, 1);
        };
      },
      tick: () => {
        for (const f of due.splice(0)) f();
      },
    };
  };
  it('calls at once, then once more for everything that came meanwhile', () => {
    let calls = 0;
    const { later, tick } = clock(),
      f = throttle(() => calls++, 100, later);
    f();
    f();
    f();
    expect(calls).toBe(1);
    tick();
    expect(calls).toBe(2);
    tick();
    expect(calls).toBe(2);
    f();
    expect(calls).toBe(3);
  });
  it('is silent after its end', () => {
    let calls = 0;
    const { later, tick } = clock(),
      f = throttle(() => calls++, 100, later);
    f();
    f();
    f.dispose();
    tick();
    f();
    expect(calls).toBe(1);
  });
});

describe('disposables', () => {
  it('end in reverse order, once, and late ones at once', () => {
    const ended: number[] = [],
      d = new Disposables();
    for (const n of [1, 2, 3]) d.defer(() => ended.push(n));
    d.dispose();
    d.dispose();
    d.defer(() => ended.push(4));
    expect(ended).toEqual([3, 2, 1, 4]);
  });
  it('one that fails keeps no other from ending', () => {
    let ended = false;
    const d = new Disposables();
    d.defer(() => {
      ended = true;
    });
    d.defer(() => {
      throw new Error('x');
    });
    expect(() => d.dispose()).toThrow('x');
    expect(ended).toBe(true);
  });
});

describe('diagnostics', () => {
  const who = { home: '/home/ada', user: 'ada' };
  it('carry no secret and no home', () => {
    const out = redact(
      'Authorization: Bearer abc.def-123 token="s3cr3t-value" at /home/ada/work and C:\\Users\\ada\\x, http://ada:hunter22@host/ key ' +
        'a1'.repeat(32),
      who,
    );
    for (const secret of ['abc.def', 's3cr3t', '/home/ada', 'hunter22', 'a1a1', 'Users\\ada'])
      expect(out, secret).not.toContain(secret);
    expect(out).toContain('~/work');
  });
  it('carry no key of a model server, and nothing that is named as a secret, also as JSON has it', () => {
    const hook = 'https://hooks.example/T0/"x"',
      out = redact(`tried sk-proj-abc_DEF-12345; posted to ${hook}: ${JSON.stringify({ hook })}`, {
        ...who,
        secrets: [hook, ''],
      });
    expect(out).toBe('tried [redacted]; posted to [redacted]: {"hook":"[redacted]"}');
  });
  it('say of who is told of alerts only whether it is set', () => {
    const said = (alerts: object): unknown => withoutTargets({ runsFolder: 'runs', alerts });
    expect(said({ command: '/bin/page', webhook: 'https://hooks.example/s', desktop: true })).toEqual({
      runsFolder: 'runs',
      alerts: { command: 'set', webhook: 'set', desktop: true },
    });
    expect(said({ command: '', webhook: '' })).toMatchObject({ alerts: { command: 'not set', webhook: 'not set' } });
    expect(withoutTargets({})).toMatchObject({ alerts: { command: 'not set', webhook: 'not set' } });
  });
  it('leave text without secrets unchanged', () => {
    expect(redact('rollout r-12 on local-1: 3 steps, reward 1', who)).toBe(
      'rollout r-12 on local-1: 3 steps, reward 1',
    );
  });
});

it('a machine without any working provider is told apart from one that was not checked', () => {
  const row = (name: string, ok: boolean) => ({ name, ok, level: 'required' as const, detail: '' });
  expect([
    machineOf([]),
    machineOf([row('desktops: docker', false), row('desktops: local', true)]),
    machineOf([row('desktops: docker', false), row('desktops: local', false), row('Node.js', true)]),
  ]).toEqual(['unknown', 'ok', 'noDesktops']);
});
it('one panel per run and kind; a desktop has its own', () => {
  expect(panelKey({ kind: 'inspector', run: '/r', rollout: 'a' })).toBe(
    panelKey({ kind: 'inspector', run: '/r', rollout: 'b' }),
  );
  expect(panelKey({ kind: 'dashboard', run: '/r' })).not.toBe(panelKey({ kind: 'dashboard', run: '/q' }));
  expect(panelKey({ kind: 'live', desktop: 'a' })).not.toBe(panelKey({ kind: 'live', desktop: 'b' }));
  expect(panelFolders({ kind: 'compare', run: '/r', left: 'a', right: 'b' })).toEqual(['/r']);
});
it('log lines of the runtime keep their level', () => {
  expect(parseLine('2026-11-20T13:00:00.000Z [warn] slow disk')).toEqual({ level: 'warn', message: 'slow disk' });
  expect(parseLine('    at somewhere')).toEqual({ level: 'info', message: '    at somewhere' });
});
