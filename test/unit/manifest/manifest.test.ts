import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decode } from 'fast-png';
import { describe, expect, it } from 'vitest';
import { commands, contextKeys, panelType, trajectoryEditor, views, walkthrough } from '../../../extension/ids.js';
import { panelKinds } from '../../../extension/panels/panelKinds.js';
import { coverageRow, entryRow, familyRow, uncoveredRow } from '../../../extension/views/poolRows.js';
import { desktopRow, moreRow, taskRow, trajectoryRow, type Row } from '../../../extension/views/rows.js';
import { queuedRow, queueRow } from '../../../extension/views/queueRows.js';
import { checkpointRow, evalRow, runRow } from '../../../extension/views/runRows.js';
import { PROVIDER_CHOICES } from '../../../runtime/domain/index.js';
import type { OutcomeKind, RunState } from '../../../runtime/protocol/types.js';
import type { PageKind } from '../../../webview/protocol.js';
import {
  control,
  desktop,
  evalPoint,
  poolEntry,
  poolFamily,
  poolView,
  run,
  task,
  trajectory,
} from '../../helpers/extension/rows.js';

const panels = (Object.keys(panelKinds) as PageKind[]).map(panelType);
const treeViews = [views.runs, views.tasks, views.desktops, views.trajectories, views.pool];

/** The manifest and the code say the same: every id, key, setting and word, both ways. */
const root = join(import.meta.dirname, '..', '..', '..');
const read = (f: string): string => readFileSync(join(root, f), 'utf8');
interface Menu {
  command: string;
  when?: string;
  group?: string;
}
interface Setting {
  type: string;
  default: unknown;
  scope?: string;
  order?: number;
  markdownDescription?: string;
  minimum?: number;
  maximum?: number;
  enum?: unknown[];
  markdownEnumDescriptions?: unknown[];
}
interface Manifest {
  main: string;
  icon: string;
  engines: { vscode: string };
  devDependencies: Record<string, string>;
  activationEvents: string[];
  extensionKind: string[];
  capabilities: {
    untrustedWorkspaces: { supported: string; restrictedConfigurations: string[] };
    virtualWorkspaces: { supported: string };
  };
  contributes: {
    commands: { command: string; title: string; category: string; icon?: string }[];
    menus: Record<string, Menu[]>;
    viewsContainers: { activitybar: { id: string; icon: string }[] };
    views: Record<string, { id: string }[]>;
    viewsWelcome: { view: string; contents: string; when: string }[];
    customEditors: { viewType: string; priority: string; selector: { filenamePattern: string }[] }[];
    configuration: { properties: Record<string, Setting> };
    walkthroughs: {
      id: string;
      steps: { id: string; description: string; completionEvents: string[]; media: { svg: string; altText: string } }[];
    }[];
    languages: { icon: { light: string; dark: string }; configuration: string }[];
    grammars: { path: string }[];
    jsonValidation: { fileMatch: string[]; url: string }[];
    configurationDefaults: Record<string, Record<string, unknown>>;
  };
}
const manifest = JSON.parse(read('package.json')) as Manifest,
  nls = JSON.parse(read('package.nls.json')) as Record<string, string>,
  c = manifest.contributes;
const words = (s: string): string => nls[s.slice(1, -1)] ?? s;
const menus = Object.entries(c.menus).flatMap(([menu, items]) => items.map((i) => ({ menu, ...i })));
const whens = [...menus.flatMap((m) => (m.when === undefined ? [] : [m.when])), ...c.viewsWelcome.map((w) => w.when)];
const strings = (x: unknown): string[] =>
  typeof x === 'string' ? [x] : typeof x === 'object' && x !== null ? Object.values(x).flatMap(strings) : [];

describe('commands', () => {
  it('are contributed and registered, both ways', () => {
    expect(c.commands.map((x) => x.command).sort()).toEqual(Object.values(commands).sort());
    expect(new Set(c.commands.map((x) => x.command)).size).toBe(c.commands.length);
  });
  it('have a category, a title and one place in the palette with a condition', () => {
    for (const x of c.commands) {
      expect(words(x.category), x.command).toBe('DART Studio');
      expect(words(x.title), x.command).toMatch(/^[A-Z]/);
      const palette = c.menus['commandPalette']!.filter((m) => m.command === x.command);
      expect(palette, x.command).toHaveLength(1);
      expect(palette[0]!.when, x.command).toBeTruthy();
    }
  });
  it('of the issue are there under their titles', () => {
    const titles = new Set(c.commands.map((x) => words(x.title)));
    for (const t of [
      'Start Training…',
      'Stop Training',
      'Pause',
      'Resume',
      'Resume Run…',
      'New Run File',
      'Evaluate Checkpoint…',
      'Open Dashboard',
      'Open Trajectory…',
      'Compare Trajectories',
      'Watch Desktop',
      'Open Run Folder…',
      'Start Runtime',
      'Stop Runtime',
      'Restart Runtime',
      'Attach to Runtime…',
      'Build Desktop Image',
      'Check This Machine',
      'Show Log',
      'Collect Diagnostics',
      'Open Walkthrough',
      'Open Sample Run',
      'Delete All Data…',
      'Record Demonstration…',
      'Take Over',
      'Annotate Trajectory',
      'Review Trajectories…',
      'Replay and Verify',
      'Import Trajectories…',
      'Export Trajectories…',
    ])
      expect(titles, t).toContain(t);
  });
  it('are in the manifest as the table of commands and the list of pages have them', () => {
    execFileSync(process.execPath, [join(root, 'scripts/manifest.mjs'), '--check'], { cwd: root });
  });
  it('in menus exist, and have an icon where only an icon is shown', () => {
    const known = new Map(c.commands.map((x) => [x.command, x]));
    for (const m of menus) {
      expect(known.has(m.command), `${m.menu}: ${m.command}`).toBe(true);
      if ((m.group?.startsWith('navigation') && m.menu.endsWith('/title')) || m.group?.startsWith('inline'))
        expect(known.get(m.command)!.icon, `${m.menu}: ${m.command}`).toMatch(/^\$\([a-z-]+\)$/);
    }
  });
  it('use icons that codicons has', () => {
    const codicons = new Set(
      [...read('node_modules/@vscode/codicons/dist/codicon.css').matchAll(/\.codicon-([a-z0-9-]+):before/g)].map(
        (m) => m[1],
      ),
    );
    const inRows = contexts().map((k) => k.icon.replace('~spin', ''));
    expect(
      [...c.commands.flatMap((x) => (x.icon ? [x.icon.slice(2, -1)] : [])), ...inRows].filter((i) => !codicons.has(i)),
    ).toEqual([]);
  });
  it('spin on no row but of what is over in seconds', () => {
    const spinning = contexts().filter((k) => k.icon.endsWith('~spin'));
    expect(spinning.map((k) => k.item)).toEqual(['run.stopping']);
  });
  it("on a row are at most two inline, and at most four in a view's title", () => {
    for (const v of treeViews) {
      const title = c.menus['view/title']!.filter(
        (m) => m.when?.includes(`view == ${v}`) && m.group?.startsWith('navigation'),
      );
      expect(new Set(title.map((m) => m.group)).size, v).toBeLessThanOrEqual(4);
    }
    for (const kind of contexts()) {
      const inline = c.menus['view/item/context']!.filter(
        (m) => m.group?.startsWith('inline') && fits(m.when!, kind.view, kind.item),
      );
      expect(inline.length, kind.item).toBeLessThanOrEqual(2);
    }
  });
});

/** Every row kind the trees can make. */
function contexts(): { view: string; item: string; icon: string }[] {
  const runs: RunState[] = [
      'running',
      'paused',
      'stopping',
      'finished',
      'stopped',
      'failed',
      'interrupted',
      'elsewhere',
    ],
    outcomes: OutcomeKind[] = ['success', 'failure', 'error', 'running'];
  const o = { selected: false, now: 0 },
    of =
      (view: string) =>
      (r: Row): { view: string; item: string; icon: string } => ({ view, item: r.context, icon: r.icon.id });
  return [
    ...[
      ...runs.map((state) => runRow(run({ state }), o)),
      runRow(run({ damaged: { kind: 'store.damaged', message: 'm', remedy: 'r' } }), o),
      evalRow('/r', evalPoint(), 0),
      checkpointRow('/r', 3, '/r/c'),
    ].map(of(views.runs)),
    ...[taskRow(task()), taskRow(task({ rate: 0.9 }))].map(of(views.tasks)),
    ...[
      queueRow(1, false),
      queueRow(1, true),
      ...(['waiting', 'failed'] as const).map((state) => queuedRow({ id: 'q', name: 'q', state })),
    ].map(of(views.runs)),
    ...[desktopRow(desktop(), control()), desktopRow(desktop({ rollout: 'r1' }), control({ purpose: 'takeOver' }))].map(
      of(views.desktops),
    ),
    ...[
      coverageRow(poolView()),
      coverageRow(poolView([poolFamily({ neverSolved: true, entries: [] })])),
      uncoveredRow('/r', poolFamily()),
      familyRow('/r', poolFamily(), 0),
      familyRow('/r', poolFamily({ neverSolved: true }), 0),
      ...(['human', 'imported', 'oracle', 'rollout', 'hindsight'] as const).flatMap((source) =>
        [true, false].map((enabled) => entryRow('/r', poolEntry({ source, enabled }), 0)),
      ),
    ].map(of(views.pool)),
    ...(['idle', 'starting', 'resetting', 'act', 'broken', 'stopped'] as const)
      .flatMap((state) => [desktop({ state }), desktop({ state, rollout: 'r1' })])
      .map((d) => of(views.desktops)(desktopRow(d))),
    ...[...outcomes.map((outcome) => trajectoryRow('/r', trajectory({ outcome }))), moreRow(1, 2)].map(
      of(views.trajectories),
    ),
  ];
}
/** Whether the `view` and `viewItem` parts of a condition hold. */
function fits(when: string, view: string, item: string): boolean {
  if (!new RegExp(`view == ${view.replace('.', '\\.')}( |$)`).test(when)) return false;
  const eq = /viewItem == (\S+)/.exec(when),
    re = /viewItem =~ \/(.+?)\/(?: |$)/.exec(when);
  return eq ? eq[1] === item : re ? new RegExp(re[1]!).test(item) : true;
}

describe('conditions', () => {
  it('use context keys that the code sets, and every key that it sets', () => {
    const named = new Set<string>([...Object.values(commands), ...panels, ...Object.values(views), trajectoryEditor]);
    const used = new Set(
      whens
        .flatMap((w) =>
          [...w.replace(/\/(?:[^/\\]|\\.)+\/(?= |$|\))/g, '').matchAll(/dartStudio\.\w+/g)].map((m) => m[0]),
        )
        .filter((k) => !named.has(k)),
    );
    expect([...used].sort()).toEqual([...new Set(Object.values(contextKeys))].sort());
  });
  it('on rows name kinds that exist', () => {
    for (const m of c.menus['view/item/context']!)
      expect(
        contexts().some((k) => fits(m.when!, k.view, k.item)),
        `${m.command}: ${m.when}`,
      ).toBe(true);
  });
  it('never offer to start anything in Restricted Mode', () => {
    const starts = [
      commands.startTraining,
      commands.startTrainingWithFile,
      commands.resumeRun,
      commands.evaluate,
      commands.buildDesktop,
      commands.startRuntime,
      commands.restartRuntime,
      commands.checkMachine,
      commands.newRunFile,
      commands.recordDemonstration,
      commands.takeOver,
      commands.stepThrough,
      commands.annotate,
      commands.replay,
      commands.importTrajectories,
      commands.exportTrajectories,
      commands.addToPool,
      commands.removeFromPool,
    ];
    for (const m of c.menus['commandPalette']!)
      if ((starts as string[]).includes(m.command)) expect(m.when, m.command).toContain('isWorkspaceTrusted');
    const allowed = [
      commands.openSample,
      commands.openTrajectory,
      commands.showLog,
      commands.openWalkthrough,
    ] as string[];
    for (const w of c.viewsWelcome.filter((x) => x.when.includes('!isWorkspaceTrusted')))
      for (const [, id] of words(w.contents).matchAll(/\(command:(dartStudio\.\w+)/g))
        expect(allowed, id).toContain(id);
  });
});

describe('views', () => {
  it('are those of the code, with a welcome for each state', () => {
    expect(c.views[views.container]!.map((v) => v.id)).toEqual(treeViews);
    expect(c.viewsContainers.activitybar[0]!.id).toBe(views.container);
    for (const v of treeViews) expect(c.viewsWelcome.filter((w) => w.view === v).length, v).toBeGreaterThan(2);
    for (const w of c.viewsWelcome)
      for (const [, id] of words(w.contents).matchAll(/\(command:(dartStudio\.\w+)/g))
        expect(Object.values(commands), w.contents).toContain(id);
  });
  it("have a monochrome icon in the theme's colour", () => {
    const svg = read(c.viewsContainers.activitybar[0]!.icon);
    expect(svg).toContain('width="24" height="24"');
    expect(svg.match(/(?:stroke|fill)="([^"]+)"/g)!.every((x) => /none|currentColor/.test(x))).toBe(true);
  });
});

describe('words', () => {
  it('of the manifest exist, and none is left over', () => {
    const used = new Set(strings(manifest).flatMap((s) => (/^%.+%$/.test(s) ? [s.slice(1, -1)] : [])));
    expect([...used].sort()).toEqual(Object.keys(nls).sort());
  });
  it('of the code are those that translators get', () => {
    execFileSync(process.execPath, [join(root, 'scripts/l10n.mjs'), '--check'], { cwd: root });
  });
});

describe('settings', () => {
  const inCode = [...read('extension/settings.ts').matchAll(/(?:text|count|get<\w+>)\('([\w.]+)'/g)].map(
    (m) => `dartStudio.${m[1]}`,
  );
  const properties = Object.entries(c.configuration.properties);
  it('are read, and what is read is a setting', () => {
    expect([...new Set(inCode)].sort()).toEqual(Object.keys(c.configuration.properties).sort());
  });
  it('are described, ordered and bounded', () => {
    for (const [k, p] of properties) {
      expect(words(p.markdownDescription ?? ''), k).toMatch(/\.$/);
      expect(p.default, k).not.toBeUndefined();
      if (p.type === 'integer')
        expect(
          [p.minimum, p.maximum].every((x) => typeof x === 'number'),
          k,
        ).toBe(true);
      if (p.enum) expect(p.markdownEnumDescriptions, k).toHaveLength(p.enum.length);
    }
    expect(properties.map(([, p]) => p.order)).toEqual(properties.map((_, i) => i + 1));
  });
  it('offer every provider of desktops', () => {
    expect(c.configuration.properties['dartStudio.desktops.provider']!.enum).toEqual(PROVIDER_CHOICES);
  });
  it('open no port and tell nobody anything until a person says so', () => {
    const off = ['dartStudio.metrics.port', 'dartStudio.alerts.command', 'dartStudio.alerts.webhook'];
    expect(off.map((k) => c.configuration.properties[k]!.default)).toEqual([0, '', '']);
  });
  it("that name a program, a host or a place are the machine's, and not an untrusted workspace's", () => {
    const restricted = manifest.capabilities.untrustedWorkspaces.restrictedConfigurations;
    for (const k of restricted) expect(c.configuration.properties[k], k).toBeDefined();
    for (const [k, p] of properties) if (p.scope?.startsWith('machine')) expect(restricted, k).toContain(k);
    for (const k of ['dartStudio.runtime.nodePath', 'dartStudio.docker.host', 'dartStudio.runsFolder'])
      expect(c.configuration.properties[k]!.scope, k).toMatch(/^machine/);
  });
  it('that name what the host runs, or who is told something, can be set by no workspace, trusted or not', () => {
    for (const k of [
      'runtime.nodePath',
      // The one runtime serves all folders and windows.
      'docker.host',
      'osworld.checkout',
      'osworld.vm',
      'kubernetes.context',
      'kubernetes.credentialPlugins',
      'kubernetes.kubectl',
      'alerts.command',
      'alerts.webhook',
      'alerts.desktop',
      'metrics.port',
    ])
      expect(c.configuration.properties[`dartStudio.${k}`]!.scope, k).toBe('machine');
    // What a trusted workspace may set of a machine, each folder of it for itself.
    const overridable = properties.filter(([, p]) => p.scope === 'machine-overridable').map(([k]) => k);
    expect(overridable.sort()).toEqual(
      ['desktops.count', 'desktops.provider', 'runsFolder'].map((k) => `dartStudio.${k}`),
    );
  });
});

describe('the rest', () => {
  it('activates only for panels that are restored, for links, and for the schema that a run file names', () => {
    expect(manifest.activationEvents.sort()).toEqual(
      [...panels.map((p) => `onWebviewPanel:${p}`), 'onFileSystem:dart-studio', 'onUri'].sort(),
    );
  });
  it('runs where the workspace is, and says what it can do without trust or disk', () => {
    expect(manifest.extensionKind).toEqual(['workspace']);
    expect([
      manifest.capabilities.untrustedWorkspaces.supported,
      manifest.capabilities.virtualWorkspaces.supported,
    ]).toEqual(['limited', 'limited']);
    expect(manifest.engines.vscode.replace('^', '').split('.').slice(0, 2)).toEqual(
      manifest.devDependencies['@types/vscode']!.split('.').slice(0, 2),
    );
    expect(c.configurationDefaults['remote.portsAttributes']).toEqual({
      '.+/dist/runtime\\.js.+': { onAutoForward: 'ignore' },
    });
  });
  it('opens trajectory files', () => {
    expect(c.customEditors).toMatchObject([
      { viewType: trajectoryEditor, priority: 'default', selector: [{ filenamePattern: '*.traj.jsonl' }] },
    ]);
  });
  it('has a walkthrough whose steps can be completed', () => {
    const [w] = c.walkthroughs;
    expect(w!.id).toBe(walkthrough);
    expect(w!.steps).toHaveLength(5);
    for (const s of w!.steps) {
      for (const e of s.completionEvents)
        expect(e.startsWith('onCommand:') ? Object.values(commands) : Object.values(contextKeys), e).toContain(
          e.replace(/^on\w+:/, ''),
        );
      for (const [, id] of words(s.description).matchAll(/\(command:(dartStudio\.\w+)/g))
        expect(Object.values(commands), s.id).toContain(id);
      expect(words(s.media.altText).length, s.id).toBeGreaterThan(20);
      expect(read(s.media.svg), s.id).not.toMatch(/(?:fill|stroke)="#/);
    }
  });
  it('names files that are there', () => {
    const icons = Object.values(panelKinds).flatMap(({ icon }) => [
      `media/icons/${icon}-light.svg`,
      `media/icons/${icon}-dark.svg`,
    ]);
    for (const f of [
      manifest.icon,
      ...icons,
      ...c.languages.flatMap((l) => [l.icon.light, l.icon.dark, l.configuration]),
      ...c.grammars.map((g) => g.path),
      ...c.jsonValidation.map((j) => j.url),
    ])
      expect(existsSync(join(root, f)), f).toBe(true);
    const png = decode(readFileSync(join(root, manifest.icon)));
    expect([png.width, png.height]).toEqual([128, 128]);
  });
  it('ships the schema of run files that the runtime has', () => {
    execFileSync(process.execPath, [join(root, 'scripts/schema.mjs'), '--check'], { cwd: root });
  });
});
