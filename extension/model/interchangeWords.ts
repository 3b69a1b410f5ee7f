/** Import and export in words: the preview as a document, and what came of it. */
import type {
  ExportFormatName,
  ExportResult,
  ImportFormatName,
  ImportPreview,
  ImportProblem,
  ImportResult,
} from '../../runtime/protocol/types.js';
import { plain, steps, t } from '../words.js';

export const formatWord = (f: ImportFormatName | ExportFormatName): string =>
  ({
    osworld: t('OSWorld results'),
    agentnet: t('AgentNet JSONL'),
    dart: t('DART rollouts'),
    'ui-tars': t('UI-TARS GUIAgentData'),
    traj: t('DART Studio trajectories'),
    openai: t('OpenAI messages JSONL'),
  })[f];
export const trajectoriesWords = (n: number): string => (n === 1 ? t('1 trajectory') : t('{0} trajectories', n));
export const problemsWords = (n: number): string => (n === 1 ? t('1 problem') : t('{0} problems', n));
/** "9 successes, 3 failures, 140 steps, 5 tasks". */
export const countsWords = (p: ImportPreview): string =>
  [
    p.successes === 1 ? t('1 success') : t('{0} successes', p.successes),
    p.failures === 1 ? t('1 failure') : t('{0} failures', p.failures),
    p.trajectories > p.successes + p.failures
      ? t('{0} without a verdict', p.trajectories - p.successes - p.failures)
      : '',
    steps(p.steps),
    p.tasks === 1 ? t('1 task') : t('{0} tasks', p.tasks),
  ]
    .filter((x) => x !== '')
    .join(', ');

const cell = (s: string): string => plain(s).replace(/\n/g, ' ');
function problemTable(problems: readonly ImportProblem[], count: number): string[] {
  if (problems.length === 0) return [];
  return [
    '',
    `## ${t('Problems')}`,
    '',
    `| ${t('Where')} | ${t('What')} | ${t('What to do')} |`,
    '| --- | --- | --- |',
    ...problems.map((p) => `| ${cell(p.where)} | ${cell(p.what)} | ${cell(p.remedy ?? '')} |`),
    ...(count > problems.length ? ['', t('And {0} more.', count - problems.length)] : []),
  ];
}
const noteLines = (notes: Readonly<Record<string, number>>): string[] =>
  Object.keys(notes).length === 0
    ? []
    : ['', `## ${t('Notes')}`, '', ...Object.entries(notes).map(([what, n]) => `- ${plain(what)}: ${n}`)];

/** Markdown; everything from the files is escaped. */
export function previewDocument(p: ImportPreview): string {
  return [
    `# ${t('Import of {0}', plain(p.path))}`,
    '',
    t('Nothing has been written yet.'),
    '',
    `| ${t('What')} | ${t('Number')} |`,
    '| --- | ---: |',
    `| ${t('Trajectories')} | ${p.trajectories} |`,
    `| ${t('Successes')} | ${p.successes} |`,
    `| ${t('Failures')} | ${p.failures} |`,
    `| ${t('Steps')} | ${p.steps} |`,
    `| ${t('Tasks')} | ${p.tasks} |`,
    `| ${t('Already in the run')} | ${p.already} |`,
    `| ${t('Problems')} | ${p.problemCount} |`,
    ...Object.entries(p.formats).map(([f, n]) => `| ${formatWord(f as ImportFormatName)} | ${n} |`),
    ...noteLines(p.notes),
    ...problemTable(p.problems, p.problemCount),
    '',
  ].join('\n');
}
export function importDocument(r: ImportResult, from: string): string {
  return [
    `# ${t('Imported from {0}', plain(from))}`,
    '',
    `| ${t('What')} | ${t('Number')} |`,
    '| --- | ---: |',
    `| ${t('Trajectories')} | ${r.imported} |`,
    `| ${t('Successes')} | ${r.successes} |`,
    `| ${t('Steps')} | ${r.steps} |`,
    `| ${t('In the experience pool')} | ${r.pooled} |`,
    `| ${t('Already in the run')} | ${r.already} |`,
    `| ${t('Duplicates')} | ${r.duplicateCount} |`,
    `| ${t('Problems')} | ${r.problemCount} |`,
    ...(Object.keys(r.notPooled).length === 0
      ? []
      : [
          '',
          `## ${t('Not in the experience pool')}`,
          '',
          ...Object.entries(r.notPooled).map(([why, n]) => `- ${plain(why)}: ${n}`),
        ]),
    ...noteLines(r.notes),
    ...problemTable(r.problems, r.problemCount),
    '',
  ].join('\n');
}
export function importWords(r: ImportResult): string {
  const more = [
    r.pooled > 0 ? t('{0} in the experience pool', r.pooled) : '',
    r.already > 0 ? t('{0} already in the run', r.already) : '',
    r.duplicateCount > 0
      ? r.duplicateCount === 1
        ? t('1 duplicate left out')
        : t('{0} duplicates left out', r.duplicateCount)
      : '',
    r.problemCount > 0 ? problemsWords(r.problemCount) : '',
  ].filter((x) => x !== '');
  const did =
    more.length === 0
      ? t('Imported {0}.', trajectoriesWords(r.imported))
      : t('Imported {0}: {1}.', trajectoriesWords(r.imported), more.join(', '));
  return r.stopped ? `${did} ${t('It was stopped; import again to continue from there.')}` : did;
}
export function exportWords(r: ExportResult): string {
  const parts = Object.entries(r.parts).filter(([, n]) => n > 0),
    split = parts.length > 1 ? ` (${parts.map(([name, n]) => `${name} ${n}`).join(', ')})` : '';
  const did =
    r.trajectories === 0
      ? t('No matches: no trajectory was exported.')
      : `${t('Exported {0}, {1}', trajectoriesWords(r.trajectories), steps(r.steps))}${split}.`;
  const lacks = Object.entries(r.notes ?? {}).map(([what, n]) => ` ${trajectoriesWords(n)}: ${plain(what)}.`),
    said = `${did}${lacks.join('')}`;
  return r.problems.length === 0
    ? said
    : `${said} ${t('Left out: {0}', `${r.problems[0]!.where}: ${r.problems[0]!.what}`)}${r.problems.length > 1 ? ` ${t('and {0} more', r.problems.length - 1)}` : ''}.`;
}
/** Folder name of a new run for what is imported from a path. */
export function runNameFor(path: string): string {
  const last =
      path
        .split(/[/\\]/)
        .filter((x) => x !== '')
        .at(-1) ?? '',
    name = last
      .replace(/\.(jsonl?|zip|traj)\b/g, '')
      .toLowerCase()
      .replace(/[^a-z0-9._-]+/g, '-')
      .replace(/^[-.]+|[-.]+$/g, '')
      .slice(0, 60);
  return name === '' ? 'imported' : /^import/.test(name) ? name : `imported-${name}`;
}
/** Why a run cannot be named so; undefined when it can. */
export const badRunName = (name: string): string | undefined =>
  /^[A-Za-z0-9][\w.-]{0,79}$/.test(name.trim())
    ? undefined
    : t('Letters, digits, dots, hyphens and underscores, at most 80, beginning with a letter or digit.');
