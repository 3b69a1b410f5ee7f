/** Activities of the utilisation lanes by their code in a record; a new one goes to the end. */
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
