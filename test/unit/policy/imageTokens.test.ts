import { describe, expect, it } from 'vitest';
import { smartResize, UI_TARS_15_LIMITS } from '../../../runtime/policy/actions/coordinates.js';
import { imageTokens, limitsOf, QWEN3_LIMITS } from '../../../runtime/policy/actions/imageTokens.js';

describe('tokens of a picture', () => {
  it.each([
    [1280, 720, 1196, 880],
    [640, 400, 322, 240],
    [1920, 1080, 2691, 2040],
  ])('%dx%d: %d for Qwen2.5-VL and UI-TARS 1.5, %d for Qwen3-VL', (width, height, qwen25, qwen3) => {
    expect(imageTokens({ width, height }, UI_TARS_15_LIMITS)).toBe(qwen25);
    expect(imageTokens({ width, height }, QWEN3_LIMITS)).toBe(qwen3);
  });
  it('are those of the resized picture', () => {
    expect(smartResize({ width: 1280, height: 720 })).toEqual({ width: 1288, height: 728 });
    expect(smartResize({ width: 1280, height: 720 }, QWEN3_LIMITS)).toEqual({ width: 1280, height: 704 });
    // The limit that transformers has by default.
    const small = { ...UI_TARS_15_LIMITS, maxPixels: 1_003_520 };
    expect(imageTokens({ width: 1920, height: 1080 }, small)).toBeLessThanOrEqual(1280);
  });
  it('depend on the model by the coordinates it writes', () => {
    expect([limitsOf('qwen25').factor, limitsOf('relative1000').factor, limitsOf('relative999').factor]).toEqual([
      28, 28, 32,
    ]);
  });
});
