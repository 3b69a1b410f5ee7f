/** Finds the packages that commands of task files install. */

/** A package manager, options, then `install` or `update`. Options are read once, whatever they are called. */
export function installs(text: string): boolean {
  const managers = /\b(apt|apt-get|snap|pip3?|flatpak) +/g,
    option = /-\S+ +/y,
    verb = /(install|update)\b/y;
  let read = 0;
  while (managers.test(text)) {
    // A name among the options of an earlier match: what follows it is known.
    if (managers.lastIndex < read) continue;
    option.lastIndex = managers.lastIndex;
    while (option.test(text)) read = option.lastIndex;
    verb.lastIndex = Math.max(read, managers.lastIndex);
    if (verb.test(text)) return true;
  }
  return false;
}

/**
 * Whether all that a text installs is among these packages, asked of `sudo apt`: an image whose `sudo` answers for apt
 * has them already.
 */
export function installsOnly(text: string, packages: readonly string[]): boolean {
  return text
    .split(/[\n;&|]/)
    .filter(installs)
    .every((command) => {
      const words = command.trim().split(/\s+/),
        apt = words.findIndex((w) => w === 'apt' || w === 'apt-get'),
        [verb, ...names] = words.slice(apt + 1).filter((w) => !w.startsWith('-'));
      if (apt < 0 || !words.slice(0, apt).includes('sudo')) return false;
      return verb === 'update' || (verb === 'install' && names.every((n) => packages.includes(n)));
    });
}
