import tseslint from 'typescript-eslint';

/** One way to hide a member: `#`. Constructors have no other word than `private`. */
const hidden = {
  selector:
    ':matches(PropertyDefinition, MethodDefinition[kind!="constructor"], TSParameterProperty)[accessibility="private"]',
  message: 'Write #name.',
};
const timeout = {
  selector: 'CallExpression[callee.object.name="AbortSignal"][callee.property.name="timeout"]',
  message: 'Use deadline() of runtime/concurrency: inside AbortSignal.any a timeout never fires once it is collected.',
};
/** VS Code makes links of what it shows there, and a link may be a command. */
const toasts = {
  selector:
    ':matches(MemberExpression[property.name=/^(show(Information|Warning|Error)Message|showInputBox|createInputBox|withProgress)$/], ObjectPattern > Property[key.name=/^(show(Information|Warning|Error)Message|showInputBox|createInputBox|withProgress)$/])',
  message: 'Use extension/toasts.ts, in which no words of others become a link.',
};
/** What commands write may hold words of strangers. */
const terminal = {
  selector:
    'MemberExpression[object.object.name="process"][object.property.name=/^std(out|err)$/][property.name="write"]',
  message: 'Use runtime/cli/output.ts, in which no words of others steer the terminal.',
};

export default tseslint.config(
  { ignores: ['dist/**', '.cache/**', 'node_modules/**', 'runs/**', 'coverage/**', '**/*.mjs', '**/*.cjs'] },
  ...tseslint.configs.recommended,
  {
    rules: {
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      'max-lines': ['error', { max: 400, skipBlankLines: true }],
      'no-unused-private-class-members': 'error',
      eqeqeq: 'error',
      'no-duplicate-imports': ['error', { allowSeparateTypeImports: true }],
      'no-restricted-syntax': ['error', hidden],
    },
  },
  { files: ['runtime/**/*.ts'], rules: { 'no-restricted-syntax': ['error', hidden, timeout] } },
  {
    files: ['runtime/cli/**/*.ts'],
    ignores: ['runtime/cli/output.ts'],
    rules: { 'no-restricted-syntax': ['error', hidden, timeout, terminal] },
  },
  {
    files: ['extension/**/*.ts'],
    ignores: ['extension/toasts.ts'],
    rules: { 'no-restricted-syntax': ['error', hidden, toasts] },
  },
  {
    // Parsing costs by depth and values: what strangers may have written is bounded in both (runtime/foreign/json.ts).
    files: ['runtime/**/*.ts'],
    ignores: [
      'runtime/foreign/json.ts',
      // Bounded by themselves before they parse:
      'runtime/cluster/agentReplies.ts',
      'runtime/data/store/record.ts',
      'runtime/data/store/runMeta.ts',
      'runtime/protocol/transport.ts',
      'runtime/run/backends/vlmWeights.ts',
      'runtime/run/exportModel.ts',
      'runtime/run/runFolders.ts',
      // A few hundred bytes to 64 KB at most:
      'runtime/data/store/lockClaim.ts',
      'runtime/data/store/pipeLock.ts',
      'runtime/queries/rows.ts',
      'runtime/service/runLabels.ts',
      'runtime/trainer/engine/*.ts',
      'runtime/trainer/remote/http.ts',
      // In a worker of its own, with a deadline:
      'runtime/tasks/metrics/**',
      // Written by this user's own runtime or Docker client:
      'runtime/cluster/images.ts',
      'runtime/cluster/imageBuild/rootfs.ts',
      'runtime/cluster/providers/kubernetes/images.ts',
      'runtime/cluster/providers/sandboxRecords.ts',
      'runtime/protocol/activeRuns.ts',
      'runtime/server/discovery.ts',
      'runtime/service/runQueue.ts',
      'runtime/service/studio.ts',
    ],
    rules: {
      'no-restricted-properties': [
        'error',
        { object: 'JSON', property: 'parse', message: 'Use runtime/foreign/json.ts, which bounds depth and values.' },
      ],
    },
  },
  {
    // An asynchronous codebase: a promise that nobody waits for, or a switch that forgets a case, is a fault.
    files: ['runtime/**/*.ts', 'extension/**/*.ts', 'webview/**/*.ts', 'test/**/*.ts'],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
    },
  },
  {
    // What strangers may have made is opened in one way (runtime/files/foreignFile.ts).
    files: ['runtime/**/*.ts'],
    ignores: [
      'runtime/files/**',
      // They read what this process, its own user's programs or the system made:
      'runtime/cli/**',
      'runtime/cluster/**',
      'runtime/server/**',
      'runtime/data/store/oldLockName.ts',
      'runtime/data/store/processIdentity.ts',
      'runtime/run/backends/reading.ts',
      'runtime/service/studio.ts',
      'runtime/trainer/engine/environment.ts',
      'runtime/trainer/engine/state.ts',
    ],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          paths: ['node:fs', 'node:fs/promises'].map((name) => ({
            name,
            importNames: [
              'readFile',
              'readFileSync',
              'createReadStream',
              'openAsBlob',
              'openSync',
              'copyFile',
              'copyFileSync',
              'cp',
              'cpSync',
              'link',
              'linkSync',
              'symlink',
            ],
            message: 'Use runtime/files/foreignFile.ts, which never waits and has a bound.',
          })),
        },
      ],
    },
  },
  { files: ['test/**'], rules: { '@typescript-eslint/no-non-null-assertion': 'off', 'max-lines': 'off' } },
);
