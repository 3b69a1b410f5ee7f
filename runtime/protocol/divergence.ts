import type { Action, FrameLink } from '../domain/index.js';

/**
 * How a failure parted from the success of its task that it was like for longest. `instead`: another action; `beside`,
 * `elsewhere`: the same at another place, near or far; `other`: the same with other text, keys or direction; `early`: it
 * ended where the success goes on; `late`: it went on where the success ended; `same`: the same to the end; `alone`:
 * there is no success to compare it with.
 */
export type DivergenceKind = 'instead' | 'beside' | 'elsewhere' | 'other' | 'early' | 'late' | 'same' | 'alone';
export type Side = 'above' | 'below' | 'left' | 'right';

/** Failures of a family that parted from successes in the same way. */
export interface FailureCluster {
  readonly family: string;
  readonly kind: DivergenceKind;
  /** The failures' action there; absent where they had ended. */
  readonly did?: Action['type'];
  /** The success's action there; absent where it has ended, or there is none. */
  readonly expected?: Action['type'];
  /** Side of the right place on which they were, for `beside`. */
  readonly side?: Side;
  /** Median distance from the right place, pixels. */
  readonly distance?: number;
  /** How most of them ended. */
  readonly ended: 'finished' | 'gave up' | 'step cap';
  /** Median position of the step, from 0. */
  readonly step: number;
  /** Policy versions, oldest and newest. */
  readonly versions?: readonly [number, number];
  /** Newest first. */
  readonly rollouts: readonly string[];
  readonly exemplars: readonly FailureExemplar[];
}
export interface FailureExemplar {
  readonly rollout: string;
  readonly task: string;
  readonly step: number;
  readonly frame: FrameLink;
  readonly action?: Action;
  /** The success it parted from, at the same step, and what that does there. */
  readonly success?: string;
  readonly expected?: Action;
}
/** Screens and actions of an episode, without what was sampled. */
export interface EpisodeStrip {
  readonly rollout: string;
  readonly steps: readonly { readonly frame: FrameLink; readonly actions: readonly Action[] }[];
  /** The screen that the verifier saw. */
  readonly last?: FrameLink;
}
/** Places of clicks as columns. */
export interface ClickPlaces {
  readonly x: readonly number[];
  readonly y: readonly number[];
  readonly success: readonly boolean[];
  readonly version: readonly number[];
  /** Place in `rollouts`. */
  readonly rollout: readonly number[];
  readonly step: readonly number[];
  readonly rollouts: readonly string[];
  /** A first screen of the family, to draw them on. */
  readonly frame?: FrameLink;
}
export interface FailuresView {
  /** Families that have any failures, most first. */
  readonly families: readonly { readonly family: string; readonly failures: number; readonly successes: number }[];
  /** Largest first. */
  readonly clusters: readonly FailureCluster[];
  /** The newest failures were looked at, so many of so many. */
  readonly looked: number;
  readonly failures: number;
  /** Trajectories of the run that are too old to be looked at. */
  readonly older?: number;
  /** Places of the clicks; present for one family. */
  readonly clicks?: ClickPlaces;
}
