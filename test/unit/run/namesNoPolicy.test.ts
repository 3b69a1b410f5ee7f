import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { SHIPPED } from '../../../runtime/config/index.js';

const RUNTIME = join(import.meta.dirname, '../../../runtime');
/** What drives a run, curates, counts and publishes: the same for every policy. Backends alone may know what one is. */
const ROOMS = ['run', 'rollout', 'data'];
const BACKENDS = join('run', 'backends');
/** How steps are kept in a journal and read back; a step may have tokens. */
const STORE = join('data', 'store');

const files = (room: string): string[] =>
  readdirSync(join(RUNTIME, room), { recursive: true, encoding: 'utf8' })
    .filter((f) => f.endsWith('.ts'))
    .map((f) => join(room, f))
    .filter((f) => !f.startsWith(BACKENDS));
const parse = (name: string, text: string): ts.SourceFile =>
  ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true);
/** Names that a file of the vocabulary gives to others. */
function exported(file: string): string[] {
  const source = parse(file, readFileSync(join(RUNTIME, file), 'utf8'));
  return source.statements.flatMap((s) => {
    if (!ts.canHaveModifiers(s) || !s.modifiers?.some((m) => m.kind === ts.SyntaxKind.ExportKeyword)) return [];
    if (ts.isVariableStatement(s)) return s.declarationList.declarations.map((d) => d.name.getText());
    const { name } = s as ts.Statement & { readonly name?: ts.Identifier };
    return name ? [name.text] : [];
  });
}
const INSIDE = new Set([
  ...exported('domain/policySpec.ts'),
  ...exported('domain/alphabet.ts'),
  ...exported('domain/promptTokens.ts'),
  'sampledRemotely',
]);
const MODULE =
  /\/(policy\/(embedded|remote)|trainer\/(native|remote|engine))\/|\/(policySpec|alphabet|promptTokens)\.js$/;

/** Kinds of policy, modules of one and words of its inside that a source names; comments and texts for people may. */
function named(text: string, { steps = false } = {}): string[] {
  const found: string[] = [];
  const kind = (name: string): boolean => Object.hasOwn(SHIPPED, name);
  const visit = (n: ts.Node): void => {
    if (ts.isStringLiteralLike(n) && (kind(n.text) || (MODULE.test(n.text) && !steps))) found.push(n.text);
    // policy.vlm, and { vlm } = policy
    if ((ts.isPropertyAccessExpression(n) && kind(n.name.text)) || (ts.isBindingElement(n) && kind(n.name.getText())))
      found.push(n.getText());
    if (!steps && ts.isImportSpecifier(n) && INSIDE.has((n.propertyName ?? n.name).text)) found.push(n.getText());
    n.forEachChild(visit);
  };
  visit(parse('x.ts', text));
  return found;
}

describe('what drives a run', () => {
  it.each(ROOMS)('knows no kind of policy: %s', (room) => {
    const wrong = files(room).flatMap((f) =>
      named(readFileSync(join(RUNTIME, f), 'utf8'), { steps: f.startsWith(STORE) }).map((what) => `${f}: ${what}`),
    );
    expect(wrong).toEqual([]);
  });
  it('is caught by this check when it names a kind of policy', () => {
    for (const source of [
      "if (c.policy.kind === 'embedded') act();",
      'const m = config.policy.vlm!.model;',
      'const { openai } = config.policy;',
      "import { GLYPH_SPEC } from '../../domain/index.js';",
      "import { type EmbeddedPolicySpec as S } from '../domain/index.js';",
      "import { decodePrompt } from '../domain/promptTokens.js';",
      "import { ModelServer } from '../../policy/remote/modelServer.js';",
      "const m = await import('../trainer/native/engine.js');",
    ])
      expect(named(source), source).not.toEqual([]);
    expect(named("import { traitsOf } from '../config/index.js'; // as embedded policies do")).toEqual([]);
  });
  it('looks at files that are there', () => {
    for (const room of ROOMS) expect(files(room).length).toBeGreaterThan(10);
    expect(INSIDE.size).toBeGreaterThan(20);
  });
});
