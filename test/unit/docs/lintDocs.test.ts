import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';

const { anchorsOf, brokenCitations, missingTests, textsOf, unheldItems } = (await import(
  pathToFileURL('scripts/lint-docs.mjs').href
)) as {
  anchorsOf(markdown: string): Set<string>;
  textsOf(source: string): { line: number; text: string }[];
  brokenCitations(files: readonly string[], read: (file: string) => string | undefined): string[];
  missingTests(page: string, markdown: string, read: (file: string) => string | undefined): string[];
  unheldItems(page: string, markdown: string): string[];
};

const page =
  '# Data\n\n## Run folder\n\n```sh\n# no heading\n```\n\n## Run folder\n\n### X* and `eta`: a [link](x.md)\n';
/** What is wrong in one file beside `runtime/data/README.md`, whose content is `page`. */
const problemsIn = (file: string, text: string): string[] => {
  const tree: Record<string, string> = { 'runtime/data/README.md': page, 'media/a.png': '', [file]: text };
  return brokenCitations([file], (f) => tree[f]);
};

describe('anchors of a page', () => {
  it('are those that GitHub makes, and none is made inside a code block', () => {
    expect([...anchorsOf(page)]).toEqual(['data', 'run-folder', 'run-folder-1', 'x-and-eta-a-link']);
  });
});

describe('comments of a source', () => {
  it('are found beside templates, regular expressions and strings that look like comments', () => {
    const source = [
      "const a = `http://${x}/* not one */ '`; // one",
      "const b = /\\/\\*'/; /* two */",
      "const c = '// not one'; const d = `${'`'}`; // three",
      "const e = 'runtime/data/README.md#ledger';",
    ].join('\n');
    expect(textsOf(source)).toEqual([
      { line: 1, text: '// one' },
      { line: 2, text: '/* two */' },
      { line: 3, text: '// three' },
      { line: 4, text: "'runtime/data/README.md#ledger'" },
    ]);
  });
});

describe('the lint of citations', () => {
  it('accepts pages and headings that exist', () => {
    const source = '/**\n * Why: runtime/data/README.md, runtime/data/README.md#run-folder.\n */\n';
    expect(problemsIn('runtime/a.ts', source)).toEqual([]);
    expect(problemsIn('scripts/a.py', '# see runtime/data/README.md#data\n')).toEqual([]);
    expect(problemsIn('package.json', '{"description": "See runtime/data/README.md#data."}')).toEqual([]);
    expect(
      problemsIn('runtime/x/README.md', '[a](../data/README.md#data) ![b](../../media/a.png) [c](#d)\n# D'),
    ).toEqual([]);
  });
  it('names a page that is not there, by file and line', () => {
    expect(problemsIn('runtime/a.ts', 'const x = 1;\n/**\n * Why: (spec/gone.md 3).\n */\n')).toEqual([
      'runtime/a.ts:3: spec/gone.md does not exist',
    ]);
    expect(problemsIn('runtime/a.py', 'x = 1\n# see gone.md\n')).toEqual(['runtime/a.py:2: gone.md does not exist']);
  });
  it('names a heading that is not there, in comments, strings, descriptions and links', () => {
    const wrong = 'runtime/data/README.md has no heading #gone';
    expect(problemsIn('runtime/a.ts', '// runtime/data/README.md#gone\n')).toEqual([`runtime/a.ts:1: ${wrong}`]);
    expect(problemsIn('test/a.test.ts', "it('as runtime/data/README.md#gone says', f);\n")).toEqual([
      `test/a.test.ts:1: ${wrong}`,
    ]);
    expect(problemsIn('media/run.schema.json', '{"description":\n"runtime/data/README.md#gone"}')).toEqual([
      `media/run.schema.json:2: ${wrong}`,
    ]);
    expect(problemsIn('README.md', 'See\n[data](runtime/data/README.md#gone).\n')).toEqual([`README.md:2: ${wrong}`]);
    expect(problemsIn('README.md', '[own](#gone)\n')).toEqual(['README.md:1: README.md has no heading #gone']);
  });
  it('names a file that a page links to and that is not there', () => {
    expect(problemsIn('runtime/x/README.md', '![p](picture.png)\n')).toEqual([
      'runtime/x/README.md:1: runtime/x/picture.png does not exist',
    ]);
  });
  it('leaves alone what a program builds, other sites, and examples in code blocks', () => {
    expect(problemsIn('runtime/a.ts', "const f = join(dir, 'gone.md'); // https://example.org/gone.md\n")).toEqual([]);
    expect(
      problemsIn('README.md', '[site](https://example.org/gone.md) `[x](gone.md)`\n```\n[y](gone.md)\n```\n'),
    ).toEqual([]);
  });
});

describe('tests that a page names', () => {
  const source = "describe('x', () => { it('a; b', f); test(`c, d`, f); it.skipIf(no)('e', f); const it2 = 'f'; });",
    problems = (line: string): string[] =>
      missingTests('SECURITY.md', line, (f) => (f === 'test/unit/a.test.ts' ? source : undefined));
  it('are found by file and by title', () => {
    expect(problems('Holds. [test/unit/a.test.ts]')).toEqual([]);
    expect(problems('Holds. [test/unit/a.test.ts: a; b] [test/unit/a.test.ts: c, d; a; b; e]')).toEqual([]);
  });
  it('that are not there are told', () => {
    expect(problems('[test/unit/b.test.ts]')).toEqual(['SECURITY.md:1: test/unit/b.test.ts does not exist']);
    expect(problems('x\n[test/unit/a.test.ts: c, d; gone; a; b]')).toEqual([
      "SECURITY.md:2: test/unit/a.test.ts has no test 'gone'",
    ]);
    expect(problems('[test/unit/a.test.ts: f]')).toHaveLength(1);
  });
  it('are named by every item, or it says why there is none', () => {
    const page =
      '# A\nwords\n- Holds. [test/unit/a.test.ts: a; b]\n- Lies. [no test: not held off]\n- Open.\n- x [no test: ]\n';
    expect(unheldItems('SECURITY.md', page)).toEqual(
      [5, 6].map((n) => `SECURITY.md:${n}: this names no test; where there is none, write [no test: why]`),
    );
  });
});
