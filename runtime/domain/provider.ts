/** What desktops run on. */
export const PROVIDER_KINDS = ['docker', 'local', 'kubernetes'] as const;
export type ProviderKind = (typeof PROVIDER_KINDS)[number];
/** The choices of a run file: `auto` takes Docker when an engine answers, else local; Kubernetes only when asked for. */
export const PROVIDER_CHOICES = ['auto', ...PROVIDER_KINDS] as const;
export type ProviderChoice = (typeof PROVIDER_CHOICES)[number];
