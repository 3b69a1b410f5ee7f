// `node scripts/lint-words.mjs`: every word of a page that people see or hear goes through t(). Found are literals of
// webview/ that reach something visible, and any that read like prose.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';

/** No words, by file: keys as they are printed on keyboards or called by the browser, deeds, a fault for the log. */
const ALLOWED = {
  'live/controller.ts': ['Control', 'Alt', 'Shift', 'Meta'],
  'live/app.ts': ['Enter', 'pause', 'actYourself'],
  'live/view.ts': ['Ctrl', 'Alt'],
  'try/app.ts': ['Enter', 'pause', 'actYourself'],
  'try/view.ts': ['Ctrl', 'Alt'],
  'ui/actions.ts': ['Ctrl', 'Shift', 'Alt', 'Super', 'Enter', 'Tab', 'Esc', 'Del', 'Space', 'Home', 'End'],
  'ui/commands.ts': ['Ctrl', 'Shift', 'Alt', 'Space', 'Esc'],
  // The name of a phase, which a table turns into words.
  'dashboard/phases.ts': ['warm start'],
  'ui/host.ts': ['{} at {}:{}'],
};
/** Nothing but names of keys, and of colours. */
const WITHOUT_WORDS = ['ui/remoteKeys.ts', 'ui/chartTheme.ts'];

/**
 * What is wrong in the pages' sources (`[path below webview/, code]`), one line each: words that are not translated,
 * and words that are allowed in a file that no longer has them.
 */
export function wordProblems(sources, allowed = ALLOWED, without = WITHOUT_WORDS) {
  const problems = [];
  for (const [file, code] of sources) {
    if (without.includes(file)) continue;
    const loose = untranslated(file, code),
      mayStand = allowed[file] ?? [];
    for (const l of loose) if (!mayStand.includes(l.text)) problems.push(`webview/${file}:${l.line}: ${l.text}`);
    for (const w of mayStand)
      if (!loose.some((l) => l.text === w))
        problems.push(`webview/${file}: has no ${w} any more, which is allowed there`);
  }
  const there = new Set(sources.map(([file]) => file));
  for (const file of [...Object.keys(allowed), ...without])
    if (!there.has(file)) problems.push(`webview/${file}: is not there, but words are allowed in it`);
  return problems;
}

/** Wordings that had to be explained, and what is said instead. */
const RIDDLES = {
  'Take Off the List': 'Remove from List',
  'Watch On': 'Keep watching',
  'The sum closes': 'All rollouts accounted for',
  'Mend the': 'Fix',
  'Nothing fits': 'No matches',
  'were passed by': 'skipped',
  'hangs on': 'Decisive step',
  'stays on show': 'Showing last loaded data',
  'Keep It In': 'Save to',
  'Take Over From': 'Take Over',
  'staleness bound': 'staleness limit',
  'What is trained?': 'What do you want to train?',
  Toggle: 'what it does: Turn On or Off, Show or Hide',
};
/** Riddles among texts of commands and messages (`[file, {key: text}]`), one line each. */
export function riddles(bundles, of = RIDDLES) {
  return bundles.flatMap(([file, texts]) =>
    Object.values(texts).flatMap((text) =>
      Object.entries(of).flatMap(([old, better]) =>
        String(text).includes(old) ? [`${file}: "${text}" has "${old}". Say: ${better}`] : [],
      ),
    ),
  );
}

/** Attributes and properties that people see or hear; and those of ours that end there. */
const visible = new Set([
  'title',
  'alt',
  'placeholder',
  'aria-label',
  'aria-description',
  'aria-roledescription',
  'aria-valuetext',
  'label',
  'words',
  'word',
  'says',
  'hint',
  'text',
  'detail',
  'empty',
  'summary',
  'message',
  'remedy',
  'missing',
  'required',
  'yes',
  'heading',
  'group',
  'textContent',
  'ariaLabel',
  'ariaDescription',
]);
/** Properties that are never words. */
const silent = new Set([
  'class',
  'style',
  'data',
  'id',
  'd',
  'transform',
  'viewBox',
  'icon',
  'role',
  'type',
  'kind',
  'method',
  'command',
  'action',
  'hue',
  'pattern',
  'path',
  'keys',
  'font',
  'stroke',
  'fill',
  'aria-describedby',
  'aria-labelledby',
  'aria-keyshortcuts',
  'stroke-dasharray',
  'tone',
  'key',
  'sync',
  'op',
  'for',
  'autocomplete',
  'axis',
]);
/** Functions whose arguments from this place on are shown or said (or only those at the places of a list). */
const shows = new Map(
  Object.entries({
    h: 2,
    s: 2,
    replace: 1,
    append: 1,
    text: [1],
    button: [0],
    checkbox: [0],
    dropdown: [0],
    textField: [0],
    progress: [0],
    tag: 0,
    term: 0,
    explain: 1,
    bannerView: [1],
    emptyState: [1, 2],
    announce: [0],
    say: [0],
    section: 0,
    icon: [1],
    field: [0],
    fact: [0, 1],
    row: [0, 1, 2],
    edit: [1],
    part: [1, 2],
    fillText: [0],
  }),
);
/** Functions whose arguments are never words: names of icons, requests, selectors, events. */
const asks = new Set([
  'request',
  'querySelector',
  'querySelectorAll',
  'matches',
  'closest',
  'addEventListener',
  'removeEventListener',
  'setProperty',
  'getPropertyValue',
  'getContext',
  'createElement',
  'createElementNS',
  'mark',
  'matchMedia',
  'Error',
  'dispatch',
  'getElementById',
  'startsWith',
  'endsWith',
  'includes',
  'test',
  'act',
  'has',
  'Path2D',
]);
/** Of these, the first. */
const names = new Set([
  'h',
  's',
  'icon',
  'bannerView',
  'emptyState',
  'get',
  'set',
  'setAttribute',
  'removeAttribute',
  'on',
  'part',
  'rateChart',
  'draft',
  'show',
]);
/** Names of icons, classes and elements, which have a dash. */
const name = /codicon|vscode-|^[a-z]+(-[a-z]+)+$|^(ds|an|cp|live)-\S+ /;
const wordy = /words|label|says|hint|why|explain/i;
const letters = /[A-Za-zÀ-ÿ]{2,}/;
const prose = /[A-Za-zÀ-ÿ’]{2,}[,;:.]? [A-Za-zÀ-ÿ]|^[A-Z][a-z]+$|^[A-Z][a-z]+[ …:.,]/;

/** Literals of a source that should go through t(), as `{line, text}`; `{}` stands for what is put into a template. */
export function untranslated(file, code) {
  const source = ts.createSourceFile(file, code, ts.ScriptTarget.Latest, true),
    out = [];
  const visit = (n) => {
    if (
      ts.isImportDeclaration(n) ||
      ts.isExportDeclaration(n) ||
      ts.isTypeNode(n) ||
      ts.isTypeAliasDeclaration(n) ||
      ts.isInterfaceDeclaration(n)
    )
      return;
    const words =
      ts.isStringLiteral(n) || ts.isNoSubstitutionTemplateLiteral(n)
        ? [n.text]
        : ts.isTemplateExpression(n)
          ? [n.head.text, ...n.templateSpans.map((x) => x.literal.text)]
          : [];
    const said = words.join('{}');
    if (words.some((w) => letters.test(w)) && !name.test(said)) {
      const where = placeOf(n);
      if (where === 'visible' || (where === 'unknown' && prose.test(said)))
        out.push({ line: source.getLineAndCharacterOfPosition(n.getStart()).line + 1, text: said });
    }
    ts.forEachChild(n, visit);
  };
  visit(source);
  return out;
}

const nameOf = (n) =>
  n && (ts.isIdentifier(n) || ts.isPrivateIdentifier(n) || ts.isStringLiteral(n))
    ? n.text.replace(/^#/, '')
    : n && ts.isPropertyAccessExpression(n)
      ? nameOf(n.name)
      : '';
/** Its value is that of a part of it, as it stands. */
const passesOn = (n) =>
  ts.isParenthesizedExpression(n) ||
  ts.isAsExpression(n) ||
  ts.isSatisfiesExpression(n) ||
  ts.isNonNullExpression(n) ||
  ts.isArrayLiteralExpression(n) ||
  ts.isSpreadElement(n) ||
  ts.isTemplateSpan(n) ||
  ts.isTemplateExpression(n);
/** Operators that join texts or choose one. */
const joining = new Set([
  ts.SyntaxKind.PlusToken,
  ts.SyntaxKind.BarBarToken,
  ts.SyntaxKind.QuestionQuestionToken,
  ts.SyntaxKind.AmpersandAmpersandToken,
]);
const placeOfOperand = (n) =>
  n.operatorToken.kind !== ts.SyntaxKind.EqualsToken
    ? 'silent'
    : visible.has(nameOf(n.left)) || wordy.test(nameOf(n.left))
      ? 'visible'
      : 'unknown';
/** The function that an arrow is, or that a `return` stands in. */
function functionOf(n) {
  let f = n;
  while (!ts.isFunctionLike(f) && f.parent) f = f.parent;
  return f;
}
/** What a function is called by. */
const ownerOf = (f) =>
  f.parent &&
  (ts.isVariableDeclaration(f.parent) || ts.isPropertyDeclaration(f.parent) || ts.isPropertyAssignment(f.parent))
    ? f.parent.name
    : ts.isFunctionDeclaration(f) || ts.isMethodDeclaration(f) || ts.isGetAccessor(f)
      ? f.name
      : undefined;
/** Nothing where it is what is called, or a part of that. */
function placeOfArgument(call, n) {
  const called = nameOf(call.expression),
    at = call.arguments?.indexOf(n) ?? -1;
  if (called === 't' && at === 0) return 'silent';
  // Why a failure does not matter: for readers of the code.
  if (/^(ignoreFailure|orUndefined)$/.test(called) && at === 1) return 'silent';
  if (at < 0) return undefined;
  if (asks.has(called) || (at === 0 && names.has(called))) return 'silent';
  const from = shows.get(called);
  return from !== undefined && (typeof from === 'number' ? at >= from : from.includes(at)) ? 'visible' : 'unknown';
}
/** Where the value of a literal goes: up through what only chooses or joins. */
function placeOf(start) {
  for (let n = start, up = n.parent; ; n = up, up = n.parent) {
    if (passesOn(up)) continue;
    if (ts.isConditionalExpression(up)) {
      if (up.condition === n) return 'silent';
      continue;
    }
    if (ts.isBinaryExpression(up)) {
      if (joining.has(up.operatorToken.kind)) continue;
      return placeOfOperand(up);
    }
    // ['a', cond && 'b'].filter(Boolean).join(', ')
    if (
      ts.isPropertyAccessExpression(up) &&
      up.expression === n &&
      ts.isCallExpression(up.parent) &&
      /^(filter|join|flat|concat|trim)$/.test(up.name.text)
    ) {
      up = up.parent;
      continue;
    }
    if (ts.isPropertyAssignment(up)) {
      if (up.name === n) return 'silent';
      const key = nameOf(up.name);
      if (silent.has(key) || /icon/i.test(key)) return 'silent';
      if (visible.has(key)) return 'visible';
      // A table by key: as the table is called.
      if (ts.isObjectLiteralExpression(up.parent)) {
        up = up.parent;
        continue;
      }
    }
    if (ts.isObjectLiteralExpression(up)) continue;
    if (ts.isVariableDeclaration(up) || ts.isPropertyDeclaration(up))
      return wordy.test(nameOf(up.name)) ? 'visible' : 'unknown';
    if (ts.isArrowFunction(up) || ts.isReturnStatement(up)) {
      const f = functionOf(up),
        owner = ownerOf(f),
        called = nameOf(owner);
      if (silent.has(called) || /icon/i.test(called)) return 'silent';
      if (wordy.test(called)) return 'visible';
      // A child made by map().
      if (!owner && f.parent && ts.isCallExpression(f.parent) && /^(map|flatMap)$/.test(nameOf(f.parent.expression))) {
        up = f.parent;
        continue;
      }
      return 'unknown';
    }
    if (ts.isCallExpression(up) || ts.isNewExpression(up)) {
      const place = placeOfArgument(up, n);
      if (place === undefined) continue;
      return place;
    }
    // A value of a table, or a key.
    if (ts.isElementAccessExpression(up)) {
      if (up.expression === n) continue;
      return 'silent';
    }
    if (ts.isCaseClause(up) || ts.isLiteralTypeNode(up) || ts.isComputedPropertyName(up)) return 'silent';
    return 'unknown';
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const sources = readdirSync('webview', { recursive: true, encoding: 'utf8' })
    .filter((f) => f.endsWith('.ts') && !f.endsWith('.d.ts'))
    .map((f) => [f.replaceAll('\\', '/'), readFileSync(join('webview', f), 'utf8')]);
  const problems = wordProblems(sources),
    bundles = ['l10n/bundle.l10n.json', 'package.nls.json'].map((f) => [f, JSON.parse(readFileSync(f, 'utf8'))]),
    old = riddles(bundles);
  for (const p of [...problems, ...old]) console.error(p);
  if (old.length > 0) process.exitCode = 1;
  if (problems.length > 0) {
    console.error(
      'Put words for people into t() of webview/ui/words.ts; what is no word is listed in scripts/lint-words.mjs.',
    );
    process.exitCode = 1;
  }
}
