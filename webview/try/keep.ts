/** After the end: what the verifier found, what the person says, and what becomes of it. */
import type { ControlState } from '../../runtime/protocol/types.js';
import { field } from '../live/ask.js';
import { h } from '../ui/dom.js';
import { button } from '../ui/toolkit.js';
import { t } from '../ui/words.js';

export interface TrialKeeping {
  keep(p: { readonly pool: 'auto' | 'never'; readonly verdict?: 'success' | 'failure'; readonly note: string }): void;
  override(note: string): void;
  discard(): void;
  open(rollout: string): void;
  annotate(rollout: string): void;
}

/** Built once for each outcome, so that what is being typed stays. */
export function trialKeepView(c: ControlState, gone: boolean, k: TrialKeeping): HTMLElement | undefined {
  if (gone || c.steps.length === 0 || c.verdict?.outcome === 'error' || c.kept?.why === 'discarded') return undefined;
  if (c.kept) return keptView(c, c.kept.rollout, k);
  let note = '';
  const said = field(t('Note'), (v) => {
    note = v;
  });
  return h(
    'div',
    { class: 'live-keep' },
    h('div', { class: 'live-said' }, said.element),
    h(
      'div',
      { class: 'live-buttons' },
      keepButtons(c, k, () => note),
      discardButton(k),
    ),
  );
}
function keepButtons(c: ControlState, k: TrialKeeping, note: () => string): HTMLElement[] {
  const { verdict: v, trial } = c,
    into = trial?.heldOut
      ? t('Keep it as a trajectory; its task is for evaluation only')
      : t('Keep it as a trajectory, and in the experience pool of the collection “tries”');
  if (!v)
    return [
      button(
        t('Succeeded: Keep'),
        () => k.keep({ pool: trial?.heldOut ? 'never' : 'auto', verdict: 'success', note: note() }),
        {
          icon: 'pass',
          kind: 'primary',
          title: into,
        },
      ),
      button(t('Failed: Keep'), () => k.keep({ pool: 'never', verdict: 'failure', note: note() }), {
        icon: 'error',
        title: t('Keep it as a trajectory that did not do what was asked'),
      }),
    ];
  if (v.outcome === 'success')
    return [
      button(t('Keep'), () => k.keep({ pool: trial?.heldOut ? 'never' : 'auto', note: note() }), {
        icon: 'save',
        kind: 'primary',
        title: into,
      }),
    ];
  return [
    button(t('Keep'), () => k.keep({ pool: 'never', note: note() }), {
      icon: 'save',
      kind: 'primary',
      title: t('Keep it as a trajectory, never in the experience pool'),
    }),
    ...(trial?.heldOut
      ? []
      : [
          button(t('Add to Pool Anyway…'), () => k.override(note()), {
            icon: 'database',
            title: t(
              'Keep it and let training learn from it although the verifier did not confirm it; requires a reason',
            ),
          }),
        ]),
  ];
}
const discardButton = (k: TrialKeeping, title = t('Nothing is kept')): HTMLElement =>
  button(t('Discard'), () => k.discard(), { icon: 'trash', title });
const keptView = (c: ControlState, rollout: string, k: TrialKeeping): HTMLElement =>
  h(
    'div',
    { class: 'live-buttons' },
    button(t('Open Trajectory'), () => k.open(rollout), {
      icon: 'open-preview',
      kind: 'primary',
      title: t('Step by step, in the inspector'),
    }),
    button(t('Annotate'), () => k.annotate(rollout), { icon: 'edit', title: t('Correct, trim or mark its steps') }),
    discardButton(k, t('Remove it from the pool and tag it “discarded”')),
  );
