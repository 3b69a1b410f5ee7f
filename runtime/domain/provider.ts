/** Most desktops of a run, a command or a pool. */
export const MOST_DESKTOPS = 1024;
/** The kinds of provider, in the order in which `auto` tries them. */
export const PROVIDER_KINDS = ['docker', 'local', 'kubernetes', 'osworld'] as const;
export type ProviderKind = (typeof PROVIDER_KINDS)[number];
/** The choices of a run file: `auto` takes Docker when an engine answers, else local; others only when asked for. */
export const PROVIDER_CHOICES = ['auto', ...PROVIDER_KINDS] as const;
export type ProviderChoice = (typeof PROVIDER_CHOICES)[number];
export const isProviderChoice = (x: string): x is ProviderChoice => (PROVIDER_CHOICES as readonly string[]).includes(x);
/** The choices in words: `auto, docker or local`. */
export const providerWords = `${PROVIDER_CHOICES.slice(0, -1).join(', ')} or ${PROVIDER_CHOICES.at(-1)!}`;
