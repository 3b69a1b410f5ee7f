/**
 * One tab stop for many controls: arrow keys, Home and End move between them. Which there are may change; one that is
 * hidden or disabled is passed over.
 */
export function roving(container: HTMLElement, selector: string): void {
  let current: HTMLElement | undefined;
  const all = (): HTMLElement[] =>
    [...container.querySelectorAll<HTMLElement>(selector)].filter(
      (e) => !e.hidden && !e.hasAttribute('disabled') && !e.closest('[hidden]'),
    );
  const settle = (): void => {
    const items = all();
    if (!current || !items.includes(current)) current = items[0];
    for (const x of items) {
      const control = controlOf(x);
      if (control) control.tabIndex = x === current ? 0 : -1;
    }
    // A button of the toolkit has its real one when it has been drawn.
    if (items.some((x) => !controlOf(x)) && container.isConnected) requestAnimationFrame(settle);
  };
  container.addEventListener('focusin', (e) => {
    const item = (e.target as HTMLElement).closest<HTMLElement>(selector);
    if (!item || item === current || !container.contains(item)) return;
    current = item;
    settle();
  });
  container.addEventListener('keydown', (e) => {
    const items = all(),
      i = items.indexOf(document.activeElement as HTMLElement);
    if (i < 0 || e.altKey || e.ctrlKey || e.metaKey) return;
    const to =
      e.key === 'ArrowRight' || e.key === 'ArrowDown'
        ? i + 1
        : e.key === 'ArrowLeft' || e.key === 'ArrowUp'
          ? i - 1
          : e.key === 'Home'
            ? 0
            : e.key === 'End'
              ? items.length - 1
              : -1;
    const next = items[to];
    if (!next) return;
    e.preventDefault();
    e.stopPropagation();
    current = next;
    settle();
    next.focus();
  });
  new MutationObserver(settle).observe(container, {
    childList: true,
    subtree: true,
    attributes: true,
    attributeFilter: ['hidden', 'disabled'],
  });
  requestAnimationFrame(settle);
}
/** The element that takes the focus: for a button of the toolkit, the real button inside. */
function controlOf(e: HTMLElement): HTMLElement | null {
  return e.localName.includes('-') ? (e.shadowRoot?.querySelector('button') ?? null) : e;
}
