/**
 * Script that moves between the steps of a trajectory. It reads nothing but the page's own elements; without it all
 * steps stand one below the other.
 */
export const STEPS_SCRIPT = `(() => {
  const steps = [...document.querySelectorAll('section.step')], links = [...document.querySelectorAll('.viewer nav a')];
  if (steps.length === 0) return;
  document.documentElement.classList.add('js');
  const by = (id) => document.getElementById(id), where = by('where'), previous = by('previous'), next = by('next'), marks = by('marks');
  let at = -1;
  const show = (i) => {
    const to = Math.max(0, Math.min(steps.length - 1, i));
    if (to === at) return;
    at = to;
    steps.forEach((s, k) => { s.hidden = k !== at; });
    links.forEach((a, k) => { if (k === at) a.setAttribute('aria-current', 'step'); else a.removeAttribute('aria-current'); });
    links[at].scrollIntoView({ block: 'nearest' });
    where.textContent = 'Step ' + (at + 1) + ' of ' + steps.length + ': ' + steps[at].dataset.did;
    previous.disabled = at === 0;
    next.disabled = at === steps.length - 1;
  };
  const high = (from, by) => { for (let i = from + by; i >= 0 && i < steps.length; i += by) if (steps[i].dataset.high) { show(i); return; } };
  const named = () => steps.findIndex((s) => '#' + s.id === location.hash);
  const toggle = () => { marks.setAttribute('aria-pressed', String(!document.body.classList.toggle('unmarked'))); };
  const keys = {
    ArrowLeft: () => show(at - 1), ArrowRight: () => show(at + 1), k: () => show(at - 1), j: () => show(at + 1),
    Home: () => show(0), End: () => show(steps.length - 1), n: () => high(at, 1), p: () => high(at, -1), m: toggle,
  };
  document.addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || !Object.hasOwn(keys, e.key)) return;
    e.preventDefault();
    keys[e.key]();
  });
  links.forEach((a, i) => a.addEventListener('click', (e) => { e.preventDefault(); show(i); }));
  previous.addEventListener('click', () => show(at - 1));
  next.addEventListener('click', () => show(at + 1));
  marks.addEventListener('click', toggle);
  addEventListener('hashchange', () => { const i = named(); if (i >= 0) show(i); });
  show(Math.max(0, named()));
})();`;
