/** The filter of the Trajectories view, one part at a time. */
import { nameOfTask } from '../../runtime/protocol/shared.js';

import {
  annotatedWord,
  assistedWord,
  clean,
  filterWords,
  isEmpty,
  originWord,
  outcomes,
  outcomeWord,
  parseVersions,
  provenances,
  reviewedWord,
  versionsText,
  type ViewFilter,
} from '../model/filter.js';
import type { StudioModel } from '../model/studioModel.js';
import { showInputBox } from '../toasts.js';
import { t } from '../words.js';
import { choose, chooseMany } from './ask.js';

type Part =
  'outcome' | 'family' | 'origin' | 'version' | 'tag' | 'annotated' | 'reviewed' | 'assisted' | 'text' | 'clear';

/** The new filter; undefined when nothing was changed. */
export async function editFilter(f: ViewFilter, model: StudioModel): Promise<ViewFilter | undefined> {
  const now = (shown: string): { description?: string } => (shown === '' ? {} : { description: shown });
  const part = await choose<Part>(
    t('Filter Trajectories'),
    [
      { label: `$(pass) ${t('Outcome')}`, ...now(f.outcome?.map(outcomeWord).join(', ') ?? ''), value: 'outcome' },
      { label: `$(checklist) ${t('Task')}`, ...now(f.family ?? ''), value: 'family' },
      { label: `$(person) ${t('Origin')}`, ...now(f.provenance?.map(originWord).join(', ') ?? ''), value: 'origin' },
      { label: `$(versions) ${t('Policy version')}`, ...now(versionsText(f.version)), value: 'version' },
      { label: `$(tag) ${t('Tag')}`, ...now(f.tag ?? ''), value: 'tag' },
      {
        label: `$(edit) ${t('Annotations')}`,
        ...now(f.annotated === undefined ? '' : annotatedWord(f.annotated)),
        value: 'annotated',
      },
      {
        label: `$(check-all) ${t('Review')}`,
        ...now(f.reviewed === undefined ? '' : reviewedWord(f.reviewed)),
        value: 'reviewed',
      },
      {
        label: `$(person-add) ${t('Assistance')}`,
        ...now(f.assisted === undefined ? '' : assistedWord(f.assisted)),
        detail: t('Whether a person took or chose some of its steps'),
        value: 'assisted',
      },
      {
        label: `$(search) ${t('Text')}`,
        ...now(f.text ?? ''),
        detail: t('In instruction, task and id'),
        value: 'text',
      },
      ...(isEmpty(f) ? [] : [{ label: `$(clear-all) ${t('Clear Filter')}`, value: 'clear' as const }]),
    ],
    isEmpty(f) ? t('No filter') : filterWords(f),
  );
  const next = part && (await edit(part, f, model));
  return next && clean(next);
}

async function edit(part: Part, f: ViewFilter, model: StudioModel): Promise<ViewFilter | undefined> {
  switch (part) {
    case 'clear':
      return {};
    case 'outcome': {
      const outcome = await chooseMany(
        t('Outcome'),
        outcomes.map((o) => ({ label: outcomeWord(o), picked: f.outcome?.includes(o) ?? false, value: o })),
      );
      return outcome && { ...f, outcome };
    }
    case 'origin': {
      const provenance = await chooseMany(
        t('Origin'),
        provenances.map((o) => ({ label: originWord(o), picked: f.provenance?.includes(o) ?? false, value: o })),
      );
      return provenance && { ...f, provenance };
    }
    case 'annotated':
      return yesOrNo(t('Annotations'), annotatedWord, (annotated) => set(f, 'annotated', annotated));
    case 'reviewed':
      return yesOrNo(t('Review'), reviewedWord, (reviewed) => set(f, 'reviewed', reviewed));
    case 'assisted':
      return yesOrNo(t('Assistance'), assistedWord, (assisted) => set(f, 'assisted', assisted));
    case 'family': {
      const family = await choose(t('Task'), [
        { label: t('All tasks'), value: '' },
        ...model.tasks.map((k) => ({ label: nameOfTask(k), description: k.title || undefined, value: k.family })),
      ]);
      return family === undefined ? undefined : { ...f, family };
    }
    case 'version': {
      const words = await showInputBox({
        ignoreFocusOut: true,
        title: t('Policy version'),
        prompt: t('A version or a range: 7, 3-9, 5-, -4; empty for all'),
        value: versionsText(f.version),
        validateInput: (v) => (parseVersions(v) ? undefined : t('Enter a version or a range such as 3-9.')),
      });
      const version = words === undefined ? undefined : parseVersions(words);
      return version && { ...f, version };
    }
    case 'tag': {
      const tag = await showInputBox({
        ignoreFocusOut: true,
        title: t('Tag'),
        prompt: t('Empty for all'),
        value: f.tag ?? '',
      });
      return tag === undefined ? undefined : { ...f, tag: tag.trim().replace(/^#/, '') };
    }
    case 'text': {
      const text = await showInputBox({
        ignoreFocusOut: true,
        title: t('Text'),
        prompt: t('In instruction, task and id; empty for all'),
        value: f.text ?? '',
      });
      return text === undefined ? undefined : { ...f, text: text.trim() };
    }
  }
}

async function yesOrNo(
  title: string,
  word: (yes: boolean) => string,
  next: (yes: boolean | undefined) => ViewFilter,
): Promise<ViewFilter | undefined> {
  const picked = await choose<'all' | 'yes' | 'no'>(title, [
    { label: t('All'), value: 'all' },
    { label: word(true), value: 'yes' },
    { label: word(false), value: 'no' },
  ]);
  return picked && next(picked === 'all' ? undefined : picked === 'yes');
}
function set(f: ViewFilter, key: 'annotated' | 'reviewed' | 'assisted', value: boolean | undefined): ViewFilter {
  const { [key]: _before, ...rest } = f;
  return value === undefined ? rest : { ...rest, [key]: value };
}
