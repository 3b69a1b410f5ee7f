import { describe, expect, it } from 'vitest';
import { promptOf } from '../../../runtime/run/backends/vlm.js';

describe("the run file's own prompt", () => {
  it('has the instruction wherever it is asked for, letter by letter', () => {
    const template = promptOf('Do "{instruction}". Again: {instruction}')!.template!;
    expect(template("cost $& and $1, {instruction}'s")).toBe(
      `Do "cost $& and $1, {instruction}'s". Again: cost $& and $1, {instruction}'s`,
    );
  });
  it("is the UI-TARS prompt where the run file has none, and the text alone where it doesn't ask", () => {
    expect(promptOf(undefined)).toBeUndefined();
    expect(promptOf('Click.')!.template!('anything')).toBe('Click.');
  });
});
