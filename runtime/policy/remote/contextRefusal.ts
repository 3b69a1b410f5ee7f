/**
 * Words of servers that refuse a prompt because it is longer than the model's context: vLLM and OpenAI ("maximum context
 * length", "maximum model length"), SGLang ("maximum allowed length", "the model's context length"), our engine.
 */
const WORDS = /maximum (context|model|allowed) length|model's context length|context_length_exceeded|--max-context/i;

/** Whether an answer says that the prompt is longer than the model's context. */
export const refusesLength = (status: number, text: string): boolean => status === 400 && WORDS.test(text);
