import { describe, expect, it } from 'vitest';
import { validOps } from '../../../runtime/annotations/validate.js';
import { actionSchema } from '../../../runtime/annotations/schema.js';
import { StudioError, actionCall, canonicalAction, type Action, type StepView } from '../../../runtime/domain/index.js';
import { CodeReader } from '../../../runtime/interchange/pyautoguiRead.js';
import { actionsCode } from '../../../runtime/domain/pyautogui/write.js';
import type { CoordinateMode } from '../../../runtime/policy/actions/coordinates.js';
import { GrammarError } from '../../../runtime/policy/actions/parse.js';
import { uiTarsPrompt } from '../../../runtime/policy/actions/prompt.js';
import { formatAction, formatAnswer, parseActions } from '../../../runtime/policy/actions/uiTars.js';
import { fieldOf, movePoint, pointsOf } from '../../../webview/annotator/actionFields.js';
import { actionCall as pageCall, actionIcon, actionName, actionWords } from '../../../webview/ui/actions.js';
import { marksOf } from '../../../webview/ui/overlay.js';
import { opaque, codes, answers, samples } from '../../helpers/actions/samples.js';

/**
 * What every language makes of every action, as it was before the languages were derived from one table: run folders,
 * exports, prompts and translations depend on it. A line that changes is a change that somebody notices. A new action
 * adds lines: `npx vitest run --project unit test/unit/actions -u`, and read the difference.
 */
const frozen = (name: string): string => `../../fixtures/actions/${name}.txt`;
const screen = { width: 640, height: 400 };
const modes: readonly CoordinateMode[] = ['relative1000', 'qwen25', 'relative999', 'relative1', 'absolute'];
const json = (v: unknown): string => JSON.stringify(v) ?? 'undefined';
const saying = (look: () => unknown): string => {
  try {
    return json(look());
  } catch (e) {
    if (!(e instanceof StudioError || e instanceof Error)) throw e;
    return `! ${e.message}${e instanceof GrammarError ? ` (${e.position})` : ''}`;
  }
};
const page = (lines: readonly string[]): string => `${lines.join('\n')}\n`;

describe('the languages of actions are what they were', () => {
  it('the UI-TARS grammar', async () => {
    const c = { mode: 'relative1000' as const, screen };
    await expect(
      page(answers.map((call) => `${call}\n    ${saying(() => parseActions(`Action: ${call}`, c).actions)}`)),
    ).toMatchFileSnapshot(frozen('grammar'));
  });

  it('calls, canonical forms and coordinates', async () => {
    const lines = samples.flatMap((a) => [
      json(a),
      `  canonical ${json(canonicalAction(a))}`,
      `  call      ${actionCall(a, (p) => `<${p.x} ${p.y}>`)}`,
      ...modes.map((mode) => {
        const call = formatAction(a, { mode, screen, boxTokens: mode === 'qwen25' });
        return `  ${mode.padEnd(12)} ${call} -> ${saying(() => parseActions(call, { mode, screen }).actions)}`;
      }),
    ]);
    const thoughtful = formatAnswer(
      { thought: 'I see.', actions: samples.slice(0, 3) },
      { mode: 'relative1000', screen },
    );
    await expect(page([...lines, thoughtful])).toMatchFileSnapshot(frozen('calls'));
  });

  it('the prompt, byte for byte', async () => {
    await expect(
      page([
        uiTarsPrompt('Open the file.'),
        '='.repeat(20),
        uiTarsPrompt('x', { language: 'German', note: 'Sudo: p' }),
      ]),
    ).toMatchFileSnapshot(frozen('prompt'));
  });

  it('pyautogui, written and read back', async () => {
    const spaces = ['absolute', 'relative'] as const;
    const lines = samples.flatMap((a) => [
      json(a),
      ...spaces.flatMap((space) => {
        const code = actionsCode([a], space, screen);
        return [
          `  ${space} ${code.replace(/\n/g, '\n    ')}`,
          `  -> ${saying(() => new CodeReader(space).read(code, screen))}`,
        ];
      }),
    ]);
    await expect(page(lines)).toMatchFileSnapshot(frozen('pyautogui-written'));
  });

  it('pyautogui, as others write it', async () => {
    await expect(
      page(codes.map((code) => `${code}\n    ${saying(() => new CodeReader('absolute').read(code, screen))}`)),
    ).toMatchFileSnapshot(frozen('pyautogui-read'));
  });

  it('what a person may send, and how one may be edited', async () => {
    const step = (a: Action): StepView => ({
      index: 0,
      at: 0,
      frame: { hash: 'a'.repeat(64), ...screen },
      actions: [a],
      origin: 'policy',
      settled: true,
      timings: { observe: 0, queue: 0, decide: 0, perform: 0, settle: 0 },
    });
    const edited = (was: Action, value: Action): string =>
      saying(() =>
        validOps([step(was)], 'r', { head: 0, edits: [] } as never, 0, [{ op: 'action', step: 0, action: 0, value }]),
      );
    const said = (v: unknown): string => {
      const r = actionSchema.safeParse(v);
      return r.success
        ? json(r.data)
        : `! ${r.error.issues.map((i) => `${i.path.join('.')}: ${i.message}`).join('; ')}`;
    };
    const first = (type: string): Action => samples.find((s) => s.type === type)!;
    const lines = [
      ...samples.map((a) => `${json(a)}\n  sent   ${said(a)}\n  edited ${edited(first(a.type), a)}`),
      ...opaque.map((v) => `${json(v)}\n  sent   ${said(v)}`),
      `retyped ${edited(samples[0]!, { type: 'wait' })}`,
      `off the screen ${edited(samples[0]!, { type: 'click', at: { x: 640, y: 0 } })}`,
      `off the screen ${edited(first('drag'), { type: 'drag', from: { x: 0, y: 0 }, to: { x: 0, y: -1 } })}`,
      `no such key ${edited(first('hotkey'), { type: 'hotkey', keys: ['ctrl', 'constructor'] })}`,
      `no such character ${edited(first('type'), { type: 'type', text: 'a\u0001' })}`,
    ];
    await expect(page(lines)).toMatchFileSnapshot(frozen('sent-and-edited'));
  });

  it('what the pages say, draw and edit', async () => {
    const typed = ['', 'a⇥b', 'ctrl + S', 'a+b+c+d+e+f', '7', '21', '0', '60001', '1.5', 'x y'];
    const lines = samples.flatMap((a) => {
      const field = fieldOf(a),
        { parse, ...shown } = field ?? { parse: undefined };
      return [
        json(a),
        `  words ${actionWords(a)}`,
        `  name  ${actionName(a)}`,
        `  icon  ${actionIcon(a)}`,
        `  call  ${pageCall(a)}`,
        `  drawn ${json(marksOf([a]))}`,
        `  one of two ${json(marksOf([a, a]).notes.at(-1) ?? marksOf([a, a]).marks.at(-1))}`,
        `  points ${json(pointsOf([a]))}`,
        ...pointsOf([a]).map((p) => `    moved ${json(movePoint(a, p.end, { x: 1, y: 2 }))}`),
        `  field ${json(shown)}`,
        ...(parse ? typed.map((t) => `    ${json(t)} -> ${json(parse(t))}`) : []),
      ];
    });
    await expect(page(lines)).toMatchFileSnapshot(frozen('pages'));
  });
});
