// `node scripts/lint-docs.mjs`: every page and heading that is cited exists. Looked at are comments of sources, strings
// of sources that name a heading, descriptions of the manifest and the run file's schema, and links between pages.
// A citation in a source is a path from the repository's root: `runtime/data/README.md#ledger`.
// Of SECURITY.md also that every test it names exists, and that every item names one or says why there is none.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';

const SOURCE = /\.(ts|mts|cts|mjs|cjs|js)$/,
  OTHER_SOURCE = /\.(py|sh|css)$/,
  JSON_DESCRIPTIONS = /^(package\.json|package\.nls.*\.json|media\/run\.schema\.json|test\/bench\/.*\.json)$/;
/** Recorded results say what was so when they were made, fixtures are input of tests, and this check's own test is. */
const SKIPPED =
  /^(test\/fixtures\/(?!.*\.ts$)|test\/bench\/results\/|test\/unit\/docs\/|package-lock\.json|node_modules\/|dist\/)/;

/** A path that ends in `.md`, with or without a heading; not part of a URL, and not a name that a program builds. */
const CITATION = /(?<![\w/.:@${}-])([\w.-]+(?:\/[\w.-]+)*\.md)(#[\w-]+)?(?![\w/])/g;

/** The anchors of a page, as GitHub makes them: a second heading of the same words gets `-1`. */
export function anchorsOf(markdown) {
  const seen = new Map(),
    anchors = new Set();
  for (const text of headingsOf(markdown)) {
    const slug = text
      .toLowerCase()
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replace(/\s/g, '-');
    const n = seen.get(slug) ?? 0;
    seen.set(slug, n + 1);
    anchors.add(n === 0 ? slug : `${slug}-${n}`);
  }
  return anchors;
}

function* headingsOf(markdown) {
  let fenced = false;
  for (const line of markdown.split('\n')) {
    if (/^\s*(```|~~~)/.test(line)) fenced = !fenced;
    const heading = fenced ? undefined : /^#{1,6}\s+(.*?)\s*#*$/.exec(line)?.[1];
    if (heading !== undefined) yield heading;
  }
}

/** Comments of a TypeScript or JavaScript source as `{line, text}`, and strings that name a page's heading. */
export function textsOf(source) {
  const literals = [],
    found = [];
  const visit = (node) => {
    if (ts.isLiteralExpression(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node))
      literals.push({ from: node.pos + node.getLeadingTriviaWidth(file), to: node.end });
    ts.forEachChild(node, visit);
  };
  const file = ts.createSourceFile('source.ts', source, ts.ScriptTarget.Latest, false);
  visit(file);
  const lineOf = (at) => file.getLineAndCharacterOfPosition(at).line + 1;
  let at = 0;
  // Between literals a comment is what looks like one.
  for (const { from, to } of [...literals, { from: source.length, to: source.length }].sort(
    (x, y) => x.from - y.from,
  )) {
    if (from < at) continue;
    for (const m of source.slice(at, from).matchAll(/\/\/.*|\/\*[\s\S]*?\*\//g))
      found.push({ line: lineOf(at + m.index), text: m[0] });
    const text = source.slice(from, to);
    if (/\.md#[\w-]/.test(text)) found.push({ line: lineOf(from), text });
    at = to;
  }
  return found;
}

/**
 * What is wrong, one sentence each. `files` are paths from the root; `read` gives a file's text, or undefined when it
 * is not there.
 */
export function brokenCitations(files, read) {
  const problems = [],
    anchors = new Map();
  const anchorsIn = (page) => {
    if (!anchors.has(page)) {
      const text = read(page);
      anchors.set(page, text === undefined ? undefined : anchorsOf(text));
    }
    return anchors.get(page);
  };
  const check = (where, page, anchor) => {
    const there = anchorsIn(page);
    if (!there) problems.push(`${where}: ${page} does not exist`);
    else if (anchor !== undefined && !there.has(anchor)) problems.push(`${where}: ${page} has no heading #${anchor}`);
  };
  for (const file of files) {
    if (SKIPPED.test(file)) continue;
    const text = SOURCE.test(file) || OTHER_SOURCE.test(file) || /\.(md|json)$/.test(file) ? read(file) : undefined;
    if (text === undefined) continue;
    if (SOURCE.test(file)) {
      for (const t of textsOf(text)) for (const c of citations(t)) check(`${file}:${c.line}`, c.page, c.anchor);
    } else if (OTHER_SOURCE.test(file)) {
      for (const t of hashComments(text)) for (const c of citations(t)) check(`${file}:${c.line}`, c.page, c.anchor);
    } else if (JSON_DESCRIPTIONS.test(file)) {
      for (const c of citations({ line: 1, text })) check(`${file}:${c.line}`, c.page, c.anchor);
    } else if (file.endsWith('.md')) {
      for (const l of links(text)) {
        const where = `${file}:${l.line}`,
          [path, anchor] = l.target.split('#');
        const to = path === '' ? file : normalize(join(dirname(file), decodeURIComponent(path)));
        if (to.endsWith('.md')) check(where, to, anchor);
        else if (read(to) === undefined) problems.push(`${where}: ${to} does not exist`);
      }
    }
  }
  return problems;
}

function* citations({ line, text }) {
  for (const m of text.matchAll(CITATION))
    yield {
      line: line + text.slice(0, m.index).split('\n').length - 1,
      page: m[1],
      ...(m[2] ? { anchor: m[2].slice(1) } : {}),
    };
}

/** `[test/a/b.test.ts: its title; another]`, as SECURITY.md names the tests that hold a sentence. */
const HELD_BY = /\[(test\/[\w./-]+\.test\.ts)(?:: ([^\]]+))?\](?!\()/g;

/** Titles of tests that are written out. */
export function titlesOf(source) {
  const file = ts.createSourceFile('source.ts', source, ts.ScriptTarget.Latest, true),
    titles = new Set();
  const visit = (node) => {
    if (ts.isCallExpression(node) && /^(it|test)\b/.test(node.expression.getText(file))) {
      const [title] = node.arguments;
      if (title && ts.isStringLiteralLike(title)) titles.add(title.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return titles;
}

/** Tests that a page names and that are not there, one sentence each. A title may itself hold a semicolon. */
export function missingTests(page, markdown, read) {
  const problems = [];
  for (const [i, line] of markdown.split('\n').entries())
    for (const [, file, named] of line.matchAll(HELD_BY)) {
      const where = `${page}:${i + 1}`,
        text = read(file);
      if (text === undefined) problems.push(`${where}: ${file} does not exist`);
      else if (named !== undefined) {
        const titles = titlesOf(text);
        for (let words = named.split('; '); words.length > 0;) {
          const n = words.findLastIndex((_, k) => titles.has(words.slice(0, k + 1).join('; ')));
          if (n < 0) problems.push(`${where}: ${file} has no test '${words[0]}'`);
          words = words.slice(Math.max(n, 0) + 1);
        }
      }
    }
  return problems;
}

/** Items that name no test and do not say why there is none (`[no test: why]`), one sentence each. */
export const unheldItems = (page, markdown) =>
  markdown
    .split('\n')
    .flatMap((line, i) =>
      /^\s*- /.test(line) && !/\[test\/|\[no test: [^\]]/.test(line)
        ? [`${page}:${i + 1}: this names no test; where there is none, write [no test: why]`]
        : [],
    );

const hashComments = (text) =>
  text.split('\n').flatMap((l, i) => (/(^|\s)(#|\/\*|\*)/.test(l) ? [{ line: i + 1, text: l }] : []));

/** Links and pictures of a page that point into the repository; what stands in code is an example. */
function* links(markdown) {
  let fenced = false;
  for (const [i, line] of markdown.split('\n').entries()) {
    if (/^\s*(```|~~~)/.test(line)) fenced = !fenced;
    if (fenced) continue;
    for (const [, target] of line.replace(/`[^`]*`/g, '').matchAll(/\]\(([^)\s]+)\)/g))
      if (!/^[a-z][\w+.-]*:/i.test(target)) yield { line: i + 1, target };
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { encoding: 'utf8' })
    .split('\n')
    .filter((f) => f !== '' && existsSync(f));
  const read = (f) => {
    try {
      return readFileSync(f, 'utf8');
    } catch (e) {
      return e.code === 'EISDIR' ? '' : undefined;
    }
  };
  const problems = brokenCitations(files, read);
  for (const f of files.filter((f) => f === 'SECURITY.md'))
    problems.push(...missingTests(f, read(f), read), ...unheldItems(f, read(f)));
  for (const p of problems) console.error(p);
  if (problems.length > 0) {
    console.error('Cite a page by its path from the root and its heading, e.g. runtime/data/README.md#ledger.');
    process.exitCode = 1;
  }
}
