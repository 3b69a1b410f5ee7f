/** The columns of the table: what each is called, shows and can be filtered by. */
import type { ListColumn, OutcomeKind, RangeColumn, TrajectoryRow } from '../../runtime/protocol/types.js';
import { count, dayTime, decimal, shortFamily } from '../dashboard/format.js';
import { placeWords } from '../dashboard/flow.js';
import { outcomeWords, verdictBrief } from '../inspector/verdict.js';
import { t } from '../ui/words.js';
import type { SortColumn } from './query.js';
import type { Rows } from './rows.js';

export type ColumnKey = 'picture' | SortColumn;
export interface Column {
  readonly key: ColumnKey;
  readonly title: string;
  /** An explanation beyond the title. */
  readonly says?: string;
  /** Pixels, or of the column that takes what is left, the least. */
  readonly width: number;
  readonly grows?: boolean;
  readonly number?: boolean;
  readonly filter?: ListColumn | RangeColumn;
  text(rows: Rows, i: number): string;
}

export const originWords: Readonly<Record<TrajectoryRow['provenance'], string>> = {
  rollout: t('rollout'),
  probe: t('evaluation'),
  oracle: t('scripted'),
  human: t('demonstration'),
  imported: t('imported'),
  hindsight: t('relabelled'),
};
const value = (rows: Rows, c: Exclude<RangeColumn, 'time' | 'version' | 'update' | 'lag'>, i: number): string => {
  const x = rows.numbers[c][i]!;
  return Number.isNaN(x) ? '' : decimal(x);
};
function versions(rows: Rows, i: number): string {
  const [from, to] = [rows.numbers.versionMin[i]!, rows.numbers.versionMax[i]!];
  return Number.isNaN(to) ? '' : from === to ? `v${to}` : `v${from}–${to}`;
}
const time = (rows: Rows, i: number): string => {
  const at = rows.time(i);
  return Number.isNaN(at) ? '' : dayTime(at);
};
/** Words for a value of a column that has a list of them. `over`: nobody works on the run. */
export function valueWords(c: ListColumn, v: string, over = false): string {
  switch (c) {
    case 'outcome':
      return outcomeWords[v as OutcomeKind] ?? v;
    case 'family':
      return shortFamily(v);
    case 'origin':
      return originWords[v as TrajectoryRow['provenance']] ?? v;
    case 'ledger':
      return v === '' ? t('not in the ledger') : placeWords(v, over)[0];
  }
}

export const columns: readonly Column[] = [
  { key: 'picture', title: t('Last screen'), width: 78, text: () => '' },
  {
    key: 'outcome',
    title: t('Outcome'),
    width: 152,
    filter: 'outcome',
    text: (r, i) => verdictBrief(r.word('outcome', i) as OutcomeKind, r.numbers.reward[i]),
  },
  {
    key: 'task',
    title: t('Task'),
    width: 148,
    grows: true,
    filter: 'family',
    text: (r, i) => shortFamily(r.word('task', i)),
  },
  {
    key: 'steps',
    title: t('Steps'),
    width: 74,
    number: true,
    filter: 'steps',
    text: (r, i) => count(r.numbers.steps[i]),
  },
  {
    key: 'reward',
    title: t('Reward'),
    width: 90,
    number: true,
    filter: 'reward',
    text: (r, i) => value(r, 'reward', i),
  },
  {
    key: 'entropy',
    title: t('Entropy'),
    says: t(
      'Mean token entropy of its steps; of the embedded policy a share of the maximum of each choice, otherwise in nats.',
    ),
    width: 90,
    number: true,
    filter: 'entropy',
    text: (r, i) => value(r, 'entropy', i),
  },
  {
    key: 'advantage',
    title: t('Advantage'),
    says: t('Within its group, in the update that used it.'),
    width: 113,
    number: true,
    filter: 'advantage',
    text: (r, i) => value(r, 'advantage', i),
  },
  {
    key: 'weight',
    title: t('Weight'),
    says: t('Mean truncated importance weight of its trained steps.'),
    width: 86,
    number: true,
    filter: 'weight',
    text: (r, i) => value(r, 'weight', i),
  },
  {
    key: 'version',
    title: t('Version'),
    says: t('Policy versions that acted.'),
    // Room for "v2499–2500".
    width: 102,
    number: true,
    filter: 'version',
    text: versions,
  },
  {
    key: 'origin',
    title: t('Origin'),
    width: 92,
    filter: 'origin',
    text: (r, i) => valueWords('origin', r.word('origin', i)),
  },
  {
    key: 'ledger',
    title: t('Ledger'),
    says: t('Where the rollout went: trained, in flight, or retired for a reason.'),
    width: 140,
    filter: 'ledger',
    text: (r, i) => {
      const place = r.word('ledger', i);
      return place === '' ? '' : placeWords(place, r.over)[0];
    },
  },
  {
    key: 'time',
    title: t('Ended'),
    says: t('When it ended or, if it is still running, when it started.'),
    width: 134,
    filter: 'time',
    text: time,
  },
];
export const columnOf = (key: ColumnKey): Column => columns.find((c) => c.key === key)!;
