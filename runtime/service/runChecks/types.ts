import type { Size } from '../../domain/index.js';
import type { CoordinateMode } from '../../policy/actions/coordinates.js';
import type { PixelOptions } from '../../policy/actions/imageTokens.js';
import type { SharedFolder } from './adapterFolder.js';

/** A server that acts with a model, and what a run will want of it. */
export interface ModelServerCheck {
  /** Ends in /v1. */
  readonly url: string;
  readonly apiKey: string | undefined;
  /** Options that name the server and its key, for remedies. */
  readonly options: { readonly url: string; readonly key: string };
  readonly model: string;
  readonly screen: Size;
  readonly images: number;
  readonly maxTokens: number;
  /** Steps of the longest episode. */
  readonly steps: number;
  readonly temperature: number;
  readonly coordinates: CoordinateMode;
  /** The run file's limits on the size of pictures, where it has some. */
  readonly pixels: PixelOptions | undefined;
  /** The needs of a model that is trained; absent for one that is only rolled out. */
  readonly training?: {
    readonly imageToken: number;
    readonly alternatives: number;
    /** Folder of adapters as the server sees it. */
    readonly adapters: string | undefined;
    /** The folder of adapters as this machine has it, where it has it. */
    readonly shared: SharedFolder | undefined;
    /** 0: all weights are trained. */
    readonly rank: number;
    /** The engine that trains is this very server. */
    readonly same: boolean;
  };
}

/** Text of a prompt beside its pictures, nearly: the instructions, and the answers so far, in the middle of an episode. */
export const TEXT_TOKENS = 1500;
/** Of it the instructions; and an answer, a thought and an action of 60 to 200 tokens. */
export const INSTRUCTION_TOKENS = 700,
  ANSWER_TOKENS = 130;
