/**
 * Split a command line into words as a POSIX shell would (Python's shlex.split). Throws RangeError when a quote is not
 * closed.
 */
export function shlex(line: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote: '"' | "'" | undefined;
  for (let i = 0; i < line.length; i++) {
    const c = line[i]!;
    if (quote === "'") {
      if (c === "'") quote = undefined;
      else word += c;
    } else if (quote === '"') {
      if (c === '"') quote = undefined;
      else if (c === '\\' && (line[i + 1] === '"' || line[i + 1] === '\\')) word += line[++i]!;
      else word += c;
    } else if (c === '"' || c === "'") {
      quote = c;
      word ??= '';
    } else if (c === '\\') {
      if (i + 1 >= line.length) throw new RangeError('No escaped character.');
      word = (word ?? '') + line[++i]!;
    } else if (/\s/.test(c)) {
      if (word !== undefined) {
        words.push(word);
        word = undefined;
      }
    } else word = (word ?? '') + c;
  }
  if (quote !== undefined) throw new RangeError('No closing quotation.');
  if (word !== undefined) words.push(word);
  return words;
}
