/** A server's own facts about itself and the model it serves; those it does not give are absent. */
export interface ServerFacts {
  readonly url: string;
  /** Name and version. */
  readonly server?: string;
  readonly dtype?: string;
  /** SHA-256 of the chat template's text. */
  readonly chatTemplate?: string;
  /** Settings of its image processor: limits in pixels, patch, merge, resampling. */
  readonly imageProcessor?: Readonly<Record<string, string | number | boolean>>;
  /** Most tokens of prompt and answer. */
  readonly context?: number;
}

/** The models behind the records of a run, once for each start. A step's adapter is `adapters` and its version. */
export interface ServedModel {
  readonly model: string;
  readonly adapters: string;
  readonly acting: readonly ServerFacts[];
  readonly training: ServerFacts;
  /**
   * SHA-256 of the token ids (little-endian i32) that the fixed conversation of the proof becomes: tokenizer and chat
   * template in one, also of servers that do not say theirs.
   */
  readonly conversation?: string;
}
