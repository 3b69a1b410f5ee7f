import type { EmbeddedPolicySpec, EncodedState, Frame, Step } from '../../../runtime/domain/index.js';
import { encodeState } from '../../../runtime/policy/embedded/codec.js';
import { encodeObservation } from '../../../runtime/policy/embedded/observation.js';

/** The model input of a screen, as a run builds it from a recorded step. */
export const encodeFrame = (
  spec: EmbeddedPolicySpec,
  frame: Frame,
  instruction: string,
  priorSteps: readonly Pick<Step, 'actions'>[],
): EncodedState => encodeState(spec, encodeObservation(spec, frame), frame, instruction, priorSteps);
