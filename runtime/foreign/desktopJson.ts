import { foreignJson, type Refused } from './json.js';
import type { JsonBounds } from './jsonBounds.js';

/** Bounds of a desktop's JSON that is parsed on this thread: 4 MB of 32,768 values cost it up to 40 ms. */
export interface DesktopJsonBounds extends JsonBounds {
  readonly bytes: number;
}
/** JSON that a program of a desktop has printed, which the policy may have changed or replaced. */
export function desktopJson(printed: Buffer, most: DesktopJsonBounds, refused: Refused): unknown {
  if (printed.length > most.bytes) throw refused(`is longer than ${most.bytes} bytes`, 'bounds');
  return foreignJson(printed.toString('utf8'), most, refused);
}
