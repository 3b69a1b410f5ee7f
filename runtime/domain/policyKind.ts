/** Kind of policy that a run can have (`policy.kind`): the name that its backend is registered under. */
export type PolicyKind = string;

/** What the rest of a run must know of a kind of policy. */
export interface PolicyTraits {
  /**
   * A trainer makes new versions of it: batches end, lag is bounded, evaluations need a checkpoint. False: it is rolled
   * out and evaluated only.
   */
  readonly trained: boolean;
  /** It acts in `policy.replicas` processes of this machine that decide one thing at a time, so they bound throughput. */
  readonly processes: boolean;
  /** It needs ONNX Runtime on this machine. */
  readonly onnx: boolean;
  /** What its `type` action can contain: any text, or one line that may end with Enter, with Tab a key of its own. */
  readonly types: 'text' | 'line';
  /** Its choices have numbers, so that one of them can be drawn at random: the control of what needs no policy. */
  readonly random: boolean;
  /** It can be put into the middle of an episode, and go on as if it had come there itself. */
  readonly midway: boolean;
  /** It is asked in messages, with earlier screenshots in them: its part of the run file has `maxTokens` and `images`. */
  readonly chat: boolean;
}
