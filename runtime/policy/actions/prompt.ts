/** UI-TARS's computer-use prompt and message history (runtime/policy/README.md#prompt). */
import { ACTIONS, ACTION_TYPES } from '../../domain/index.js';

/** `U`: a data URL, or what becomes one in JSON. */
export type Content<U = string> =
  | string
  | readonly (
      | { readonly type: 'text'; readonly text: string }
      | { readonly type: 'image_url'; readonly image_url: { readonly url: U } }
    )[];
export interface Message<U = string> {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: Content<U>;
}

/**
 * One earlier turn: its screenshot while it is among the newest, and what the model (or somebody in its place) said.
 */
export interface Turn<U = string> {
  image: U | undefined;
  readonly text: string;
}

export interface PromptOptions {
  readonly language?: string;
  /** An extra line, e.g. the password for sudo. */
  readonly note?: string;
}

/** A line for every action that models are told of. */
const ACTION_SPACE = ACTION_TYPES.flatMap((type) => ACTIONS[type].prompt ?? []).join('\n');

export const uiTarsPrompt = (
  instruction: string,
  o: PromptOptions = {},
): string => `You are a GUI agent. You are given a task and your action history, with screenshots. You need to perform the next action to complete the task.

## Output Format
\`\`\`
Thought: ...
Action: ...
\`\`\`

## Action Space

${ACTION_SPACE}

## Note
- Use ${o.language ?? 'English'} in \`Thought\` part.
- Write a small plan and finally summarize your next action (with its target element) in one sentence in \`Thought\` part.${o.note ? `\n- ${o.note}` : ''}

## User Instruction
${instruction}`;

/** System, prompt, then every earlier turn (its image only when it has one) and the present screenshot. */
export function messagesOf<U = string>(prompt: string, turns: readonly Turn<U>[], image: U): Message<U>[] {
  const picture = (url: U): Message<U> => ({ role: 'user', content: [{ type: 'image_url', image_url: { url } }] });
  return [
    { role: 'system', content: 'You are a helpful assistant.' },
    { role: 'user', content: [{ type: 'text', text: prompt }] },
    ...turns.flatMap((t): Message<U>[] => [
      ...(t.image === undefined ? [] : [picture(t.image)]),
      { role: 'assistant', content: t.text },
    ]),
    picture(image),
  ];
}

/** Servers drop special tokens from their output; the model was trained on histories that have them. */
export const addBoxTokens = (text: string): string =>
  text.replace(/((?:start|end)_box=')\((\s*[-\d.]+\s*,\s*[-\d.]+\s*)\)'/g, "$1<|box_start|>($2)<|box_end|>'");
