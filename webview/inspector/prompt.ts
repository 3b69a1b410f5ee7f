/** The prompt of a remote model for a step, and its answers before the one that was carried out. */
import type { RejectedView, StepView, TrajectoryView } from '../../runtime/protocol/types.js';
import { h, icon, type Child } from '../ui/dom.js';
import type { Thumb } from '../ui/frames.js';
import { t, whole } from '../ui/words.js';
import { answerText } from './answer.js';
import type { Scale, TokenActions } from './token.js';

export interface PromptActions {
  /** undefined while it is being made. */
  thumb(hash: string): Thumb | undefined;
  select(position: number): void;
}

/** The prompt in numbers, and its images; undefined where none was recorded. */
export function promptView(m: { readonly step: StepView; readonly view: TrajectoryView }, a: PromptActions): Child {
  const { prompt } = m.step;
  if (prompt === undefined) return undefined;
  if (prompt === 'pending') return h('p', { class: 'ds-quiet' }, t('Loading…'));
  if (prompt === 'damaged')
    return h(
      'p',
      { class: 'ds-quiet' },
      t('The record of the prompt cannot be read: it does not fit those before it.'),
    );
  const tokens = t('{0} tokens', whole(prompt.tokens)),
    images = prompt.images.length === 1 ? t('1 image') : t('{0} images', prompt.images.length);
  return [
    h('p', { class: 'ds-quiet' }, `${tokens}, ${images}`),
    prompt.images.length > 0 ? h('ol', { class: 'ds-shown' }, shownImages(m, a)) : undefined,
  ];
}

/** The images of the selected step's prompt, again when new thumbnails are there. */
export function shownImages(
  { step, view }: { readonly step: StepView; readonly view: TrajectoryView },
  a: PromptActions,
): HTMLElement[] {
  const { prompt } = step;
  if (typeof prompt !== 'object') return [];
  let from = 0;
  return prompt.images.map((image, i) => {
    const own = i === prompt.images.length - 1 && image.hash === step.frame.hash,
      at = own ? view.steps.indexOf(step) : view.steps.findIndex((s, p) => p >= from && s.frame.hash === image.hash);
    if (at >= 0) from = at + 1;
    const number = at < 0 ? undefined : view.steps[at]!.index + 1,
      words = own
        ? t('Screenshot of this step')
        : number === undefined
          ? t('A screenshot of another step')
          : t('Screenshot of step {0}', number);
    return h(
      'li',
      { class: own ? 'own' : '' },
      h(
        'button',
        { type: 'button', title: words, disabled: own || at < 0, on: { click: () => a.select(at) } },
        picture(a.thumb(image.hash), words),
        h('span', { class: 'number', 'aria-hidden': 'true' }, own ? t('this') : (number ?? '?')),
      ),
    );
  });
}
function picture(thumb: Thumb | undefined, alt: string): HTMLElement {
  if (thumb && 'uri' in thumb) return h('img', { src: thumb.uri, alt });
  return h('span', { class: 'none', title: thumb?.missing }, icon('file-media', alt));
}

/** Answers that were no actions, folded up: each with its reason and what was sampled. */
export function rejectedView(
  answers: readonly RejectedView[] | undefined,
  scale: Scale,
  a: TokenActions,
): HTMLElement | undefined {
  if (!answers?.length) return undefined;
  return h(
    'details',
    { class: 'ds-rejected' },
    h(
      'summary',
      null,
      icon('circle-slash'),
      answers.length === 1 ? t('1 rejected answer') : t('{0} rejected answers', answers.length),
    ),
    h(
      'ol',
      null,
      answers.map((x) => rejectedItem(x, scale, a)),
    ),
  );
}
/** Why a server ended an answer, where not by the model's own choice. */
export const finishWords = (finish: string): string => (finish === 'length' ? t('cut off') : t('ended: {0}', finish));

function rejectedItem(x: RejectedView, scale: Scale, a: TokenActions): HTMLElement {
  return h(
    'li',
    null,
    h('p', { class: 'ds-reason' }, icon('warning', t('Rejected')), h('span', null, x.reason)),
    x.tokens?.length
      ? answerText({ tokens: x.tokens, label: t('Rejected answer, token by token'), scale }, a)
      : h('p', { class: 'ds-flow' }, x.text),
    h(
      'p',
      { class: 'ds-quiet' },
      [
        x.tokens ? t('{0} tokens', whole(x.tokens.length)) : '',
        x.finish === undefined ? '' : finishWords(x.finish),
        x.version === undefined ? '' : t('policy v{0}', x.version),
      ]
        .filter(Boolean)
        .join(' · '),
    ),
  );
}
