/**
 * Something that the programs of a desktop can have brought about, and so the policy: the task is judged 0 with this as
 * the reason. It is never an error, because an error is tried again.
 */
export class Spoiled extends Error {}
