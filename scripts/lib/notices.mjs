// Licences and notices of everything that is shipped and not ours.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Files of a package that its licence asks to pass on. */
const NOTICE_FILE = /^(licen[cs]es?|copying|notices?|copyright|third[-_]?party[-_]?notices?)([-_.].*)?$/i,
  CODE = /\.(js|cjs|mjs|ts|json|html)$/i;

/** What a package says of its licence, in the forms that npm has had. */
export function licenseOf({ license, licenses }) {
  const one = (l) => (typeof l === 'string' ? l : l?.type);
  return one(license) ?? (Array.isArray(licenses) ? licenses : [licenses]).map(one).filter(Boolean).join(' OR ');
}

/**
 * The notice of one package; `extra` are texts that it should have and does not. Throws where a package does not say its
 * licence: nothing is shipped that nobody knows the terms of.
 */
export function noticeOf(dir, extra = []) {
  const manifest = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8')),
    { name, version } = manifest,
    license = licenseOf(manifest);
  if (!license) throw new Error(`${name} ${version} does not say under which licence it is`);
  const texts = readdirSync(dir)
    .filter((f) => NOTICE_FILE.test(f) && !CODE.test(f))
    .sort()
    .map((f) => readFileSync(join(dir, f), 'utf8').trim());
  texts.push(...extra.map((f) => readFileSync(f, 'utf8').trim()));
  return {
    title: `${name} ${version}`,
    license,
    text: [`${name} ${version} (${license})`, ...(texts.length > 0 ? texts : [`Licensed under ${license}.`])].join(
      '\n\n',
    ),
  };
}

/**
 * ONNX Runtime's packages carry neither its licence nor those of what is linked into its library; both are kept here for
 * the version that is shipped. Throws when that is another one.
 */
export function onnxNotices(root = '.') {
  const { version } = JSON.parse(readFileSync(join(root, 'node_modules/onnxruntime-node/package.json'), 'utf8')),
    files = ['LICENSE', 'ThirdPartyNotices'].map((n) => join(root, `scripts/notices/onnxruntime-${version}.${n}.txt`));
  for (const f of files)
    if (!existsSync(f)) throw new Error(`${f} is missing: take it from ONNX Runtime's own release ${version}`);
  return files;
}

/** The whole page. `packages`: folders of what is bundled; `native`: ONNX Runtime is shipped beside it. */
export function thirdPartyNotices(packages, native, root = '.') {
  const entries = new Map(),
    add = (dir, extra) => {
      const { title, license, text } = noticeOf(dir, extra);
      // One licence after the other: the same text again costs a few bytes only while it is near.
      entries.set(`${license} ${title}`, text);
    };
  for (const dir of new Set([...packages, join(root, 'node_modules/@vscode/codicons')])) add(dir);
  if (native) {
    const [license, parts] = onnxNotices(root);
    add(join(root, 'node_modules/onnxruntime-node'), [license, parts]);
    add(join(root, 'node_modules/onnxruntime-common'), [license]);
  }
  const all = [...entries].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => text);
  return `DART Studio contains the following packages.\n\n${all.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}
