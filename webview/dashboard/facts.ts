/** The facts of a run, in one line each: seed, policy, tasks, learning rate, disk, machine. Pure. */
import { t } from '../ui/words.js';
import { count, decimal } from './format.js';
import { learningRate, option } from './phases.js';
import type { Model } from './model.js';

export interface Fact {
  readonly label: string;
  readonly value: string;
  readonly says: string;
}
/** 1.2e9 -> "1.2 GB". */
export function bytes(n: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'],
    k = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, n)) / 3))),
    v = n / 1000 ** k;
  return `${v >= 100 || k === 0 ? Math.round(v) : v.toFixed(1)} ${units[k]!}`;
}
/** 274516 -> "275 k". */
const size = (n: number): string =>
  n >= 1e6 ? t('{0} M', (n / 1e6).toFixed(1)) : n >= 1e3 ? t('{0} k', Math.round(n / 1e3)) : String(n);
const text = (v: unknown): string => (typeof v === 'string' ? v : '');

export function factsOf(m: Model): Fact[] {
  const d = m.detail;
  if (!d) return [];
  const f = m.footprint,
    lr = learningRate(m),
    out: (Fact | undefined)[] = [
      d.summary.seed === undefined
        ? undefined
        : { label: t('Seed'), value: String(d.summary.seed), says: t('Seed of everything random in the run.') },
      policy(m),
      d.tasks.length === 0
        ? undefined
        : {
            label: t('Tasks'),
            value: `${text(option(m, 'tasks.dir')).split(/[\\/]/).at(-1) || text(option(m, 'tasks.suite')) || '–'}, ${
              d.tasks.length === 1 ? t('1 family') : t('{0} families', count(d.tasks.length))
            }`,
            says: d.tasks.map((k) => k.family).join(', '),
          },
      lr === undefined || d.summary.collection
        ? undefined
        : {
            label: t('Learning rate'),
            value: decimal(lr),
            says: t('Of the newest update; before the first one, as set in the run file.'),
          },
      f && {
        label: t('Disk'),
        value: `${f.atLeast ? t('over {0}', bytes(f.bytes)) : bytes(f.bytes)}${f.freeBytes === undefined ? '' : `, ${t('{0} free', bytes(f.freeBytes))}`}`,
        says: t('Size of the run folder, and free space on its disk. {0}', m.run),
      },
      f && {
        label: t('Machine'),
        value: [
          f.machine.cores === 1 ? t('1 core') : t('{0} cores', f.machine.cores),
          t('{0} memory', bytes(f.machine.memoryBytes)),
        ].join(', '),
        says: t('{0}. The machine of the runtime that shows the run.', f.machine.processor || t('Processor unknown')),
      },
    ];
  return out.filter((x) => x !== undefined);
}
function policy(m: Model): Fact | undefined {
  const kind = text(option(m, 'policy.kind'));
  if (kind === '' || m.detail?.summary.collection) return undefined;
  const rank = option(m, 'trainer.remote.rank'),
    model = text(option(m, `policy.${kind}.model`)),
    parameters = m.footprint?.parameters;
  return {
    label: t('Policy'),
    value: [
      kind === 'embedded' ? t('embedded') : model.split('/').at(-1) || kind,
      ...(parameters === undefined ? [] : [t('{0} parameters', size(parameters))]),
      ...(kind === 'vlm' && typeof rank === 'number'
        ? [rank === 0 ? t('all weights') : t('LoRA of rank {0}', rank)]
        : []),
    ].join(', '),
    says: kind === 'embedded' ? t('The small policy that is trained on this machine.') : model,
  };
}
