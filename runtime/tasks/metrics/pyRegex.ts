/** Compile a Python regular expression (the part of its syntax that task files use): named groups, \A \Z, leading (?ims) flags. Throws SyntaxError. */
export function pyRegex(source: string, flags: readonly string[] = []): RegExp {
  const on = new Set(['u']);
  for (const f of flags) {
    const js = { I: 'i', IGNORECASE: 'i', M: 'm', MULTILINE: 'm', S: 's', DOTALL: 's', U: '', UNICODE: '', A: '', ASCII: '' }[f];
    if (js === undefined) throw new SyntaxError(`the regular expression flag ${f} is not supported`);
    if (js !== '') on.add(js);
  }
  const inline = /^\(\?([aimsux]+)\)/.exec(source);
  for (const f of inline?.[1] ?? '') {
    if (f === 'x') throw new SyntaxError('verbose regular expressions are not supported');
    if ('ims'.includes(f)) on.add(f);
  }
  const body = (inline ? source.slice(inline[0].length) : source)
    .replace(/\(\?P<(\w+)>/g, '(?<$1>').replace(/\(\?P=(\w+)\)/g, '\\k<$1>');
  const js = body.replace(/\\(.)/gsu, (all, c: string) => c === 'A' ? '(?<![^])' : c === 'Z' ? '(?![^])' : all);
  try { return new RegExp(js, [...on].join('')); } catch {
    // Python lets you escape any punctuation; the u flag does not.
    on.delete('u');
    return new RegExp(js, [...on].join(''));
  }
}
