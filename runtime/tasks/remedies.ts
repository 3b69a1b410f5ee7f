import type { ImageContents } from '../domain/index.js';
import { installFor } from './bridge/evaluators.js';

/** Other desktop images by name, for advice on where else a task could run. */
export type OtherImages = Readonly<Record<string, ImageContents>>;

/** Needs that nothing here can meet, and why. */
const HOPELESS: readonly (readonly [RegExp, string])[] = [
  [/^(setup:(googledrive|login)|getter:googledrive_file)$/, 'it needs a Google account'],
  [/^metric:compare_image_text$/, 'its metric reads text in pictures with easyocr, which is not installed by us'],
  [/^setup:(tidy_desktop|act|replay)$/, 'OSWorld itself has no such step'],
  [/^root$/, 'it makes a user of the system, and a desktop has only the rights of its own'],
];

export type Advice = { readonly kind: 'with'; readonly what: string } | { readonly kind: 'not'; readonly why: string };

/** How a need (`needs.ts`) can be met, or why it cannot. */
export function adviceFor(need: string, images: OtherImages): Advice {
  const hopeless = HOPELESS.find(([r]) => r.test(need));
  if (hopeless) return { kind: 'not', why: hopeless[1] };
  const [kind = '', ...rest] = need.split(':'),
    name = rest.join(':');
  if (kind === 'asset')
    return /^https?:\/\//.test(name)
      ? { kind: 'with', what: '--assets DIR, made by `tasks fetch`' }
      : { kind: 'not', why: `it downloads ${name}, which is no address` };
  if (kind === 'metric' || kind === 'getter') {
    const install = installFor(kind, name.replace(/\[.*/, ''));
    return install === undefined
      ? { kind: 'not', why: `no evaluator that we know has the ${kind} ${name}: a newer OSWorld checkout may` }
      : { kind: 'with', what: `\`dart-studio ${install}\`` };
  }
  if (need === 'network') return { kind: 'with', what: 'desktops.network "internet": it visits the live web' };
  if (need === 'network:judge') return { kind: 'not', why: 'what judges it visits the live web' };
  if (need === 'app:vscode')
    return {
      kind: 'with',
      what: "a layer with VS Code's .deb, which Debian has not: --image osworld --image-extra DIR",
    };
  const image = Object.entries(images).find(([, has]) => offers(has, kind, name))?.[0];
  if (image !== undefined) return { kind: 'with', what: `--image ${image}` };
  return { kind: 'not', why: `no image has the ${kind === 'app' ? 'application' : kind} ${name}` };
}

const offers = (has: ImageContents, kind: string, name: string): boolean =>
  kind === 'app'
    ? has.apps.includes(name)
    : kind === 'program'
      ? has.programs.includes(name)
      : kind === 'shortcut' && (has.shortcuts ?? []).includes(name);
