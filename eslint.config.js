import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist/**', '.cache/**', 'node_modules/**', 'runs/**', 'coverage/**', '**/*.mjs', '**/*.cjs'] },
  ...tseslint.configs.recommended,
  {
    rules: {
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      'max-lines': ['error', { max: 450, skipBlankLines: true, skipComments: true }],
      eqeqeq: 'error',
    },
  },
  // Where promises meet events: none is forgotten, none is taken for a value.
  {
    files: ['extension/**/*.ts', 'webview/**/*.ts'],
    languageOptions: {
      parserOptions: { project: ['./tsconfig.json', './webview/tsconfig.json'], tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
    },
  },
  { files: ['test/**'], rules: { '@typescript-eslint/no-non-null-assertion': 'off', 'max-lines': 'off' } },
);
