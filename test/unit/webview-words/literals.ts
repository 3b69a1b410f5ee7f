/**
 * Finds words for people in the pages' code that do not go through t(): literals that reach something visible, and any
 * that read like prose.
 */
import ts from 'typescript';

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
const shows: ReadonlyMap<string, number | readonly number[]> = new Map(
  Object.entries<number | readonly number[]>({
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

export interface Loose {
  readonly line: number;
  readonly text: string;
  readonly node: ts.Node;
}

export function untranslated(file: string, code: string, allowed: ReadonlySet<string> = new Set()): Loose[] {
  const source = ts.createSourceFile(file, code, ts.ScriptTarget.Latest, true),
    out: Loose[] = [];
  const visit = (n: ts.Node): void => {
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
    if (words.some((w) => letters.test(w)) && !allowed.has(said) && !name.test(said)) {
      const where = placeOf(n);
      if (where === 'visible' || (where === 'unknown' && prose.test(said)))
        out.push({ line: source.getLineAndCharacterOfPosition(n.getStart()).line + 1, text: said, node: n });
    }
    ts.forEachChild(n, visit);
  };
  visit(source);
  return out;
}

const nameOf = (n: ts.Node | undefined): string =>
  n && (ts.isIdentifier(n) || ts.isPrivateIdentifier(n) || ts.isStringLiteral(n))
    ? n.text.replace(/^#/, '')
    : n && ts.isPropertyAccessExpression(n)
      ? nameOf(n.name)
      : '';
/** Where the value of a literal goes: up through what only chooses or joins. */
function placeOf(start: ts.Node): 'visible' | 'silent' | 'unknown' {
  for (let n = start, up = n.parent; ; n = up, up = n.parent) {
    if (
      ts.isParenthesizedExpression(up) ||
      ts.isAsExpression(up) ||
      ts.isSatisfiesExpression(up) ||
      ts.isNonNullExpression(up) ||
      ts.isArrayLiteralExpression(up) ||
      ts.isSpreadElement(up) ||
      ts.isTemplateSpan(up) ||
      ts.isTemplateExpression(up)
    )
      continue;
    if (ts.isConditionalExpression(up)) {
      if (up.condition === n) return 'silent';
      continue;
    }
    if (ts.isBinaryExpression(up)) {
      const op = up.operatorToken.kind;
      if (
        op === ts.SyntaxKind.PlusToken ||
        op === ts.SyntaxKind.BarBarToken ||
        op === ts.SyntaxKind.QuestionQuestionToken ||
        op === ts.SyntaxKind.AmpersandAmpersandToken
      )
        continue;
      if (op === ts.SyntaxKind.EqualsToken)
        return visible.has(nameOf(up.left)) || wordy.test(nameOf(up.left)) ? 'visible' : 'unknown';
      return 'silent';
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
      let f: ts.Node = up;
      while (!ts.isFunctionLike(f) && f.parent) f = f.parent;
      const owner =
        f.parent &&
        (ts.isVariableDeclaration(f.parent) || ts.isPropertyDeclaration(f.parent) || ts.isPropertyAssignment(f.parent))
          ? f.parent.name
          : ts.isFunctionDeclaration(f) || ts.isMethodDeclaration(f) || ts.isGetAccessor(f)
            ? f.name
            : undefined;
      const called = nameOf(owner);
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
      const called = nameOf(up.expression),
        at = up.arguments?.indexOf(n as ts.Expression) ?? -1;
      if (called === 't' && at === 0) return 'silent';
      // Why a failure does not matter: for readers of the code.
      if (/^(ignoreFailure|orUndefined)$/.test(called) && at === 1) return 'silent';
      if (at < 0) continue;
      if (asks.has(called) || (at === 0 && names.has(called))) return 'silent';
      const from = shows.get(called);
      return from !== undefined && (typeof from === 'number' ? at >= from : from.includes(at)) ? 'visible' : 'unknown';
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
