import { describe, expect, it } from 'vitest';
import { activityLook } from '../../../webview/ui/lanesLook.js';

describe('the look of activities in the lanes', () => {
  it('no activity has the colour of an error: imitating is work', () => {
    expect(activityLook.imitate.hue).toBe('blue');
    for (const [name, look] of Object.entries(activityLook)) expect(look.hue, name).not.toBe('red');
  });
  it('no two look alike: colour and pattern together tell them apart', () => {
    const looks = Object.values(activityLook).map((a) => `${a.hue} ${a.pattern}`);
    expect(new Set(looks).size).toBe(looks.length);
  });
});
