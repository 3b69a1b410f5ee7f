import { counted } from '../domain/counted.js';
import { printableLine as plain } from '../foreign/terminalText.js';
import type { ExportReport } from './exporter.js';
import type { ImportReport, Preview } from './importReport.js';
import type { Problem } from './types.js';

/** Reports in words, for a terminal. */
const trajectories = (n: number): string => `${n} trajector${n === 1 ? 'y' : 'ies'}`;
const shown = 12;

export function problemLines(problems: readonly Problem[], total: number): string[] {
  if (total === 0) return [];
  return [
    `${counted(total, 'problem')}; these are left out:`,
    ...problems
      .slice(0, shown)
      .map((p) => `  ${plain(p.where)}: ${plain(p.what)}${p.remedy ? `. ${plain(p.remedy)}` : ''}`),
    ...(total > shown ? [`  … and ${total - shown} more${problems.length > shown ? ' (--json lists them)' : ''}`] : []),
  ];
}
const noteLines = (notes: Readonly<Record<string, number>>): string[] =>
  Object.entries(notes).map(([n, k]) => `  ${k}x ${plain(n)}`);

export function previewLines(p: Preview): string[] {
  const formats = Object.entries(p.formats)
    .map(([f, n]) => `${n} ${f}`)
    .join(', ');
  return [
    `${p.path}: ${trajectories(p.trajectories)}${formats ? ` (${formats})` : ''} of ${counted(p.tasks, 'task')}, ${counted(p.steps, 'step')}; ${p.successes} success${p.successes === 1 ? '' : 'es'}, ${counted(p.failures, 'failure')}`,
    ...(p.already > 0 ? [`${trajectories(p.already)} imported earlier`] : []),
    ...noteLines(p.notes),
    ...problemLines(p.problems, p.problemCount),
  ];
}

export function importLines(r: ImportReport): string[] {
  return [
    `Imported ${trajectories(r.imported)} (${r.successes} successful, ${counted(r.steps, 'step')}) into ${r.run}`,
    `  experience pool: ${r.pooled} added${Object.entries(r.notPooled)
      .map(([why, n]) => `; ${n} not: ${plain(why)}`)
      .join('')}`,
    ...(r.already > 0 ? [`  ${trajectories(r.already)} imported earlier`] : []),
    ...(r.duplicateCount > 0
      ? [
          `  ${counted(r.duplicateCount, 'duplicate')} left out, e.g. ${plain(r.duplicates[0]!.where)} is ${plain(r.duplicates[0]!.of)}`,
        ]
      : []),
    ...noteLines(r.notes),
    ...problemLines(r.problems, r.problemCount),
  ];
}

export function exportLines(r: ExportReport): string[] {
  const parts = Object.entries(r.parts)
    .filter(([k]) => k !== 'all')
    .map(([k, n]) => `${n} ${k}`)
    .join(', ');
  return [
    `Exported ${trajectories(r.trajectories)}${parts ? ` (${parts})` : ''}, ${counted(r.steps, 'step')}, as ${r.format} to ${r.to}`,
    ...(r.withoutOutcome > 0
      ? [`  ${trajectories(r.withoutOutcome)} without an outcome (errors, unfinished) left out`]
      : []),
    ...noteLines(r.notes),
    ...problemLines(r.problems, r.problems.length),
  ];
}
