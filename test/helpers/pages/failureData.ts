import { random } from '../../../runtime/domain/index.js';
import { clusterFailures, type Episode } from '../../../runtime/queries/divergence.js';
import type { EpisodeStrip, FailuresView } from '../../../runtime/protocol/types.js';
import type { Plan } from './trajectories.js';

const family = 'desk/form-one';

/** Episodes on these screens: successes, 38 that typed at once, 12 that clicked below the field, some cut off. */
function episodesOn(plans: readonly Plan[]): Episode[] {
  const r = random('failures'),
    frames = plans.map((p) => p.frame),
    made: Episode[] = [];
  const add = (success: boolean, actions: Episode['steps'][number]['actions'], truncated = false): void => {
    const n = made.length;
    made.push({
      rollout: `r-${String(n).padStart(6, '0')}`,
      task: `${family}#${n % 5}`,
      family,
      success,
      truncated,
      version: 3 + (n % 9),
      at: n,
      steps: actions.map((a, i) => ({ frame: frames[(3 + i) % frames.length]!, actions: [a] })),
    });
  };
  const near = (x: number, y: number, by: number) =>
    ({ type: 'click', at: { x: x + r.int(by), y: y + r.int(by) } }) as const;
  const right = () =>
    [near(320, 145, 6), { type: 'type', text: 'Ada' }, near(400, 330, 6), { type: 'finished' }] as const;
  for (let i = 0; i < 24; i++) add(true, right());
  for (let i = 0; i < 38; i++) add(false, [{ type: 'type', text: 'Ada' }, near(400, 330, 20), { type: 'finished' }]);
  for (let i = 0; i < 12; i++) add(false, [near(316, 182, 9), { type: 'type', text: 'Ada' }, { type: 'finished' }]);
  for (let i = 0; i < 5; i++) add(false, right().slice(0, 2), true);
  return made;
}
export function failuresOn(plans: readonly Plan[], chosen?: string): FailuresView {
  const all = episodesOn(plans),
    failed = all.filter((e) => !e.success),
    clicks = all.flatMap((e, who) =>
      e.steps.flatMap((s, step) =>
        s.actions.flatMap((a) =>
          'at' in a ? [{ ...a.at, success: e.success, version: e.version ?? 0, who, step }] : [],
        ),
      ),
    );
  return {
    families: [{ family, failures: failed.length, successes: all.length - failed.length }],
    clusters: clusterFailures(all),
    looked: failed.length,
    failures: 120,
    ...(chosen === undefined
      ? {}
      : {
          clicks: {
            x: clicks.map((c) => c.x),
            y: clicks.map((c) => c.y),
            success: clicks.map((c) => c.success),
            version: clicks.map((c) => c.version),
            rollout: clicks.map((c) => c.who),
            step: clicks.map((c) => c.step),
            rollouts: all.map((e) => e.rollout),
            frame: plans[3]!.frame,
          },
        }),
  };
}

/** An episode that does the first of these plans, and from `turn` on something else. */
export function stripOn(rollout: string, plans: readonly Plan[], turn: number): EpisodeStrip {
  return {
    rollout,
    steps: plans.slice(0, 6).map((p, i) => ({
      frame: p.frame,
      actions: [i < turn ? p.action : ({ type: 'click', at: { x: 60 + 40 * i, y: 300 } } as const)],
    })),
    last: plans[6]!.frame,
  };
}
