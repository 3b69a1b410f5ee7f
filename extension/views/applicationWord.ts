/** Applications that have a word of the language instead of a name. */
import { t } from '../words.js';

export function applicationWord(name: string): string {
  const words: Readonly<Record<string, string>> = {
    os: t('Operating system'),
    terminal: t('Terminal'),
    files: t('Files'),
    pdf: t('PDF viewer'),
    image: t('Image viewer'),
  };
  return Object.hasOwn(words, name) ? words[name]! : name;
}
