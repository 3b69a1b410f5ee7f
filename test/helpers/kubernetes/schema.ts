import * as models from '@kubernetes/client-node';
import { isObject } from '../../../runtime/foreign/json.js';

/** One field of a model that the client library generates from the API's OpenAPI document. */
interface Field {
  readonly baseName: string;
  readonly type: string;
}
const fieldsOf = (type: string): readonly Field[] | undefined =>
  (models as unknown as Record<string, { getAttributeTypeMap?: () => Field[] } | undefined>)[
    type
  ]?.getAttributeTypeMap?.();

/** What of `value` the API's own schema does not know, with its path; empty when it fits. */
export function misfits(value: unknown, type: string, path = type): string[] {
  const list = /^Array<(.+)>$/.exec(type)?.[1];
  if (list !== undefined)
    return Array.isArray(value) ? value.flatMap((v, i) => misfits(v, list, `${path}[${i}]`)) : [`${path}: not a list`];
  const entry = /^\{ \[key: string\]: (.+); \}$/.exec(type)?.[1];
  if (entry !== undefined)
    return isObject(value)
      ? Object.entries(value).flatMap(([k, v]) => misfits(v, entry, `${path}.${k}`))
      : [`${path}: not a map`];
  const fields = fieldsOf(type);
  if (fields) {
    if (!isObject(value)) return [`${path}: not an object`];
    return Object.entries(value).flatMap(([k, v]) => {
      const f = fields.find((x) => x.baseName === k);
      return f ? misfits(v, f.type, `${path}.${k}`) : [`${path}.${k}: unknown`];
    });
  }
  if (type === 'IntOrString' || type === 'any') return [];
  return typeof value === type ? [] : [`${path}: not a ${type}`];
}

/** The model of an object by its kind: `Pod` -> `V1Pod`. */
export const modelOf = (o: object): string => `V1${(o as { kind: string }).kind}`;
