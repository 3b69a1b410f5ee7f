/** Activities of the utilisation lanes; a record stores the index, so new ones are appended. */
export const activities = [
  'reset',
  'setup',
  'observe',
  'decide',
  'act',
  'settle',
  'verify',
  'update',
  'imitate',
  'sync',
  'idle',
] as const;
export type ActivityName = (typeof activities)[number];
