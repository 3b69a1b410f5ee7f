import { join } from 'node:path';
import { formatAnswer } from '../../policy/actions/uiTars.js';
import { messagesOf, uiTarsPrompt, type Message, type Turn } from '../../policy/actions/prompt.js';
import { Unusable } from '../types.js';
import { Images, Lines } from './write.js';
import type { WriteContext, Writer } from './write.js';

/**
 * OpenAI messages for supervised fine-tuning: messages.jsonl, one dialogue a trajectory, in the prompt and grammar that
 * `policy.kind: openai` uses; pictures by their path relative to the file. A step whose actions are not known ends the
 * dialogue before it.
 */
export function openaiWriter({ run, dir, options }: WriteContext): Writer {
  const out = new Lines(join(dir, 'messages.jsonl')),
    images = new Images(run, join(dir, 'images'));
  return {
    async add(t) {
      if (t.instruction === '') throw new Unusable('its instruction is not known');
      const turns: Turn[] = [];
      for (const s of t.steps) {
        if (s.actions.length === 0) break;
        turns.push({
          image: `images/${await images.put(s.frame)}`,
          text: formatAnswer(
            { thought: s.thought || undefined, actions: s.actions },
            { mode: options.coordinates, screen: s.frame, boxTokens: true },
          ),
        });
      }
      const last = turns.at(-1);
      if (!last) throw new Unusable('its first step has no action that is known');
      const messages: Message[] = [
        ...messagesOf(uiTarsPrompt(t.instruction), turns.slice(0, -1), last.image!),
        { role: 'assistant', content: last.text },
      ];
      await out.add({
        messages,
        id: t.id,
        task: t.task,
        family: t.family,
        outcome: t.outcome.kind,
        reward: t.outcome.kind === 'error' ? 0 : t.outcome.reward,
        provenance: t.provenance.kind,
        ...(t.provenance.kind === 'hindsight' ? { relabelled_from: t.provenance.instruction } : {}),
      });
    },
    close: () => out.close(),
  };
}
