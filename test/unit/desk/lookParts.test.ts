import { describe, expect, it } from 'vitest';
import type { FamilyId } from '../../../runtime/domain/index.js';
import type { Task } from '../../../runtime/tasks/types.js';
import {
  deskSuite,
  probeSeed,
  trainSeed,
  type Holdout,
  type ProbeSet,
} from '../../../runtime/tasks/suites/desk/index.js';
import { zoneOf } from '../../../runtime/tasks/suites/desk/scene.js';

const suite = deskSuite(),
  SETS: readonly ProbeSet[] = ['dev', 'test'];
const families = suite.families.filter((f) => f.split === 'train').map((f) => f.id);
const tasksOf = (f: FamilyId, seed: (n: number) => number, count: number): Task[] =>
  Array.from({ length: count }, (_, n) => suite.task(f, seed(n)));
const of = (set: ProbeSet, h: Holdout): Task[] =>
  families.filter((f) => suite.holdouts(f).includes(h)).flatMap((f) => tasksOf(f, (n) => probeSeed(set, h, n), 6));

/** Themes, letters and colours that a set-up asks for beside the template's own. */
const dressIn = (t: Task): string[] =>
  [
    ...JSON.stringify(t.config).matchAll(/gtk-theme-name=[^']*?(?=\\n')|font-family: [^;]*|xterm (-bg \S+ -fg \S+)/g),
  ].map((m) => m[0]);
const cornersIn = (t: Task): { readonly x: number; readonly y: number }[] =>
  [...JSON.stringify(t.config).matchAll(/--geometry=\d+x\d+\+(\d+)\+(\d+)|-e 0,(\d+),(\d+),/g)].map((m) => ({
    x: Number(m[1] ?? m[3]),
    y: Number(m[2] ?? m[4]),
  }));
const zonesIn = (tasks: readonly Task[]): string[] => tasks.flatMap(cornersIn).map(({ x, y }) => zoneOf(x, y));
const trained = families.flatMap((f) => tasksOf(f, trainSeed, 20));

describe('the parts of looks, each with the other as in training', () => {
  it.each(SETS)(
    'places (%s): no window lies where one of its template does in training, and all looks are known',
    (set) => {
      const places = of(set, 'places'),
        named = (t: Task): string[] => cornersIn(t).map(({ x, y }) => `${t.family} ${x} ${y}`),
        seen = new Set(trained.flatMap(named));
      expect(places.length).toBeGreaterThan(100);
      expect(new Set(zonesIn(places))).toEqual(new Set([set]));
      expect(places.flatMap(named).filter((c) => seen.has(c))).toEqual([]);
      expect(places.flatMap(dressIn)).toEqual([]);
    },
  );
  it.each(SETS)('styles (%s): all are dressed as no training task is, and lie where those do', (set) => {
    const styles = of(set, 'styles'),
      dresses = new Set(of(set, 'looks').flatMap(dressIn)),
      share = (tasks: readonly Task[]): number => {
        const zones = zonesIn(tasks);
        return zones.filter((z) => z === 'train').length / zones.length;
      };
    expect(trained.flatMap(dressIn)).toEqual([]);
    for (const t of styles) expect(dressIn(t).length, t.id).toBeGreaterThan(0);
    for (const d of new Set(styles.flatMap(dressIn))) expect(dresses.has(d), d).toBe(true);
    // A window with hardly any room lies where it must, in training too.
    expect(share(styles)).toBeGreaterThan(share(trained) - 0.03);
  });
});
