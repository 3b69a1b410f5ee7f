import { z } from 'zod';

/** Kinds of options: each with its default and what it means. */
export const positive = (d: number, what: string) => z.number().positive().default(d).describe(what);
export const count = (d: number, what: string) => z.int().positive().default(d).describe(what);
export const whole = (d: number, what: string) => z.int().nonnegative().default(d).describe(what);
export const share = (d: number, what: string) => z.number().min(0).max(1).default(d).describe(what);
export const flag = (d: boolean, what: string) => z.boolean().default(d).describe(what);
export const section = <T extends z.ZodRawShape>(shape: T, what: string) =>
  z
    .strictObject(shape)
    .prefault({} as never)
    .describe(what);
