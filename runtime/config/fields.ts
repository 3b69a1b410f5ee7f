import { z } from 'zod';

/** Builders for options: each takes a default (`d`) and a description (`what`). */
export const positive = (d: number, what: string) => z.number().positive().default(d).describe(what);
export const nonNegative = (d: number, what: string) => z.number().nonnegative().default(d).describe(what);
export const count = (d: number, what: string) => z.int().positive().default(d).describe(what);
export const whole = (d: number, what: string) => z.int().nonnegative().default(d).describe(what);
export const within = (least: number, most: number, d: number, what: string) =>
  z.int().min(least).max(most).default(d).describe(what);
export const share = (d: number, what: string) => z.number().min(0).max(1).default(d).describe(what);
export const flag = (d: boolean, what: string) => z.boolean().default(d).describe(what);
export const section = <T extends z.ZodRawShape>(shape: T, what: string) =>
  z
    .strictObject(shape)
    .prefault({} as never)
    .describe(what);
