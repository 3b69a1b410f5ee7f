/** Kind of policy that a run can have (`policy.kind`): the name that its backend is registered under. */
export type PolicyKind = string;

/** The traits of a kind of policy that the rest of a run depends on. */
export interface PolicyTraits {
  /**
   * A trainer makes new versions of it: batches end, lag is bounded, evaluations need a checkpoint. False: it is rolled
   * out and evaluated only.
   */
  readonly trained: boolean;
  /**
   * Whether it acts in `policy.replicas` processes of this machine that decide one thing at a time, so that they bound
   * throughput.
   */
  readonly processes: boolean;
  /** Whether it needs ONNX Runtime on this machine. */
  readonly onnx: boolean;
  /** Texts that its `type` action can contain: any, or one line that may end with Enter, with Tab a key of its own. */
  readonly types: 'text' | 'line';
  /**
   * Whether its choices have numbers, so that one can be drawn at random: the control that shows which tasks need no
   * policy.
   */
  readonly random: boolean;
  /** Whether it can be put into the middle of an episode, and go on as if it had come there itself. */
  readonly midway: boolean;
  /**
   * Whether it is asked in messages, with earlier screenshots in them: its part of the run file has `maxTokens` and
   * `images`.
   */
  readonly chat: boolean;
}
