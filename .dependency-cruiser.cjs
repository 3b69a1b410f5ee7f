// The import rules of the house: which room may import which. A rule that fires names the room it protects.
const rooms = ['cluster', 'tasks', 'policy', 'data', 'trainer'];
const only = (from, allowed) => ({
  name: `${from}-imports`,
  severity: 'error',
  comment: `runtime/${from} may import only itself and ${allowed.join(', ') || 'nothing else'}`,
  from: { path: `^runtime/${from}/` },
  to: { path: '^runtime/', pathNot: [`^runtime/${from}/`, ...allowed.map((a) => `^runtime/${a}`)] },
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
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    only('domain', []),
    only('protocol', ['domain/']),
    only('config', ['domain/']),
    only('cluster', ['domain/', 'config/']),
    only('tasks', ['domain/', 'config/', 'cluster/types\\.ts$']),
    only('policy', ['domain/', 'config/']),
    only('data', ['domain/', 'config/']),
    only('trainer', ['domain/', 'config/']),
    only('rollout', ['domain/', 'config/', ...rooms.map((r) => `${r}/types\\.ts$`)]),
    only('run', ['domain/', 'config/', 'protocol/', 'rollout/', ...rooms.map((r) => `${r}/`)]),
    only('server', ['domain/', 'config/', 'protocol/', 'run/']),
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
        pathNot: '^runtime/protocol/(types|version|binary|trajectoryFile|shared)\\.ts$',
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
    {
      name: 'rollout-types-only',
      severity: 'error',
      from: { path: '^runtime/rollout/' },
      to: { path: '^runtime/(cluster|tasks|policy|data)/', dependencyTypesNot: ['type-only'] },
    },
    pkg('onnxruntime-node', '^runtime/(policy/embedded|trainer/native)/'),
    pkg('dockerode', '^runtime/cluster/providers/'),
    pkg('jpeg-js', '^runtime/run/interchange/'),
    pkg('sql\\.js', '^runtime/data/store/'),
    pkg('ws', '^(runtime/server|extension/daemon)/'),
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: { extensions: ['.ts', '.js'] },
  },
};
