// The import rules of the house. A rule that fires names the room it protects.

/**
 * Room -> what of runtime/ it may import, besides itself: a room, a folder of it, or one file. `types:` allows only types.
 * No room is above itself: what it lacks comes in as an argument, from `service` or `cli`.
 */
const mayImport = {
  // waiting, threads and processes
  concurrency: [],
  // text that others wrote: bounds before it is parsed, nothing that steers a terminal or a shell
  foreign: [],
  // vocabulary
  domain: ['foreign'],
  // how files of others are opened; the only room that may read one
  files: ['domain'],
  protocol: ['domain'],
  config: ['domain'],
  // modules of DART: they never know one another
  cluster: ['domain', 'files', 'config'],
  policy: ['domain', 'files', 'config'],
  trainer: ['domain', 'files', 'config'],
  data: ['domain', 'files', 'config'],
  tasks: ['domain', 'files', 'config', 'types: cluster'],
  rollout: ['domain', 'config', 'types: cluster', 'types: tasks', 'types: policy', 'types: data'],
  // one training run
  run: ['domain', 'files', 'config', 'rollout', 'cluster', 'tasks', 'policy', 'data', 'trainer'],
  // our desktops for other programs
  gateway: ['domain', 'config', 'cluster', 'tasks', 'policy/actions'],
  // what people do with runs
  annotations: ['domain', 'files', 'config', 'data'],
  queries: ['domain', 'config', 'protocol', 'data', 'annotations'],
  interchange: ['domain', 'files', 'config', 'data', 'annotations', 'policy/actions', 'tasks'],
  // runs and trajectories as pages for others
  share: ['domain', 'files', 'config', 'protocol', 'data', 'types: run/figures.ts'],
  human: [
    'domain',
    'config',
    'rollout',
    'cluster',
    'policy/actions',
    'tasks',
    'annotations',
    'data',
    'types: run/runAccess.ts',
  ],
  // the daemon and the command line
  service: [
    'domain',
    'files',
    'config',
    'protocol',
    'rollout',
    'cluster',
    'tasks',
    'policy',
    'data',
    'trainer',
    'run',
    'annotations',
    'queries',
    'interchange',
    'share',
    'human',
    'gateway',
  ],
  server: ['domain', 'files', 'config', 'protocol', 'service'],
  // tasks/index.ts: `tasks check` and `tasks list` say what that room says, and need no daemon. So do `engine probe` and `engine serve`.
  cli: [
    'domain',
    'files',
    'config',
    'service',
    'server',
    'run',
    'interchange',
    'share',
    'queries',
    'gateway',
    'tasks/index.ts',
    'trainer/remote/probe.ts',
    'trainer/engine/server.ts',
    'trainer/engine/serveOptions.ts',
  ],
};

/** What every room above them may import. */
const GROUND = ['concurrency', 'foreign'];
const pathOf = (entry) => `^runtime/${entry.replace(/\./g, '\\.')}${entry.endsWith('.ts') ? '$' : '/'}`;
const roomRules = Object.entries(mayImport).flatMap(([room, own]) => {
  const entries = own.includes('domain') ? [...GROUND, ...own] : own;
  const types = entries.filter((e) => e.startsWith('types: ')).map((e) => e.slice('types: '.length)),
    whole = entries.filter((e) => !e.startsWith('types: '));
  const allowed = [room, ...whole, ...types].map(pathOf);
  return [
    {
      name: `${room}-imports`,
      severity: 'error',
      comment: `runtime/${room} may import itself and ${entries.join(', ') || 'nothing else'}`,
      from: { path: `^runtime/${room}/` },
      to: { path: '^runtime/', pathNot: allowed },
    },
    ...(types.length === 0
      ? []
      : [
          {
            name: `${room}-imports-types`,
            severity: 'error',
            comment: `of ${types.join(', ')} runtime/${room} may import only types`,
            from: { path: `^runtime/${room}/` },
            to: { path: types.map(pathOf), dependencyTypesNot: ['type-only'] },
          },
        ]),
  ];
});
const pkg = (name, where) => ({
  name: `${name.replace(/\W/g, '-')}-only-where-it-belongs`,
  severity: 'error',
  comment: `${name} is used only under ${where}`,
  from: { path: '^(runtime|extension|webview)/', pathNot: where },
  to: { path: `node_modules/${name}/` },
});
module.exports = {
  forbidden: [
    {
      name: 'no-circular',
      severity: 'error',
      comment: 'imports of types count: two files that need each other are one file, or lack a third',
      from: {},
      to: { circular: true },
    },
    ...roomRules,
    {
      name: 'nothing-is-left-out',
      severity: 'error',
      comment:
        'a source that no program reaches is not registered where its kind is (CONTRIBUTING.md#recipes), or dead',
      from: { path: ['^runtime/main\\.ts$', '^extension/main\\.ts$', '^webview/[^/]+/main\\.ts$'] },
      to: {
        path: '^(runtime|extension|webview)/.*\\.ts$',
        // The programs themselves, types of the environment, and two rooms' doors that only tests use.
        pathNot: '^(runtime|extension|webview/[^/]+)/main\\.ts$|\\.d\\.ts$|^runtime/(protocol|cluster)/index\\.ts$',
        reachable: false,
      },
    },
    {
      name: 'nothing-imports-cli',
      severity: 'error',
      comment: 'the command line is the top of the house; only the process entry starts it',
      from: { path: '^(runtime|extension|webview)/', pathNot: '^runtime/(cli/|main\\.ts$)' },
      to: { path: '^runtime/cli/' },
    },
    {
      name: 'policies-behind-their-backends',
      severity: 'error',
      comment:
        'a run, its rollouts and its data know no kind of policy: what they need of one is asked of runtime/run/backends (test/unit/run/namesNoPolicy.test.ts looks at names)',
      from: { path: '^runtime/(run|rollout|data)/', pathNot: '^runtime/run/backends/' },
      to: { path: '^runtime/(policy/(embedded|remote)|trainer/(native|remote|engine))/' },
    },
    {
      name: 'extension-imports',
      severity: 'error',
      from: { path: '^extension/' },
      to: { path: '^runtime/', pathNot: '^runtime/protocol/' },
    },
    {
      name: 'webview-imports',
      severity: 'error',
      comment: 'pages know the wire types and nothing else of the runtime',
      from: { path: '^webview/' },
      to: {
        path: '^(runtime|extension)/',
        pathNot: '^runtime/protocol/(types|requests|version|binary|trajectoryFile|shared|words|failures)\\.ts$',
      },
    },
    { name: 'webview-no-node', severity: 'error', from: { path: '^webview/' }, to: { dependencyTypes: ['core'] } },
    {
      name: 'protocol-is-pure',
      severity: 'error',
      from: { path: '^(runtime/protocol|webview/protocol)' },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'vscode-only-in-the-extension',
      severity: 'error',
      from: { path: '^(runtime|webview)/' },
      to: { path: '^vscode$' },
    },
    {
      name: 'toolkit-behind-one-folder',
      severity: 'error',
      from: { path: '^(runtime|extension|webview)/', pathNot: '^webview/ui/' },
      to: { path: 'node_modules/(@vscode/webview-ui-toolkit|uplot)/' },
    },
    pkg('onnxruntime-node', '^runtime/(policy/embedded/|trainer/native/|domain/onnxRuntime\\.ts)'),
    pkg('dockerode', '^runtime/cluster/providers/'),
    pkg('@kubernetes/client-node', '^runtime/cluster/providers/kubernetes/'),
    pkg('jpeg-js', '^runtime/interchange/'),
    pkg('hyparquet(-writer)?', '^runtime/interchange/parquet/'),
    pkg('protobufjs', '^runtime/trainer/remote/wire/'),
    pkg('sql\\.js', '^runtime/data/store/'),
    pkg('ws', '^(runtime/(server|gateway/openenv|cluster/providers/kubernetes)|extension/daemon)/'),
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: { extensions: ['.ts', '.js'] },
  },
};
