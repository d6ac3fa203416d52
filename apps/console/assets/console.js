// @ts-check
// What moves without htmx: times in the viewer's zone, copy buttons, passkeys, and forms that are sent once. Every page works without it but for passkeys.
(() => {
  const usual = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
  const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
  const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });
  /** Units from the largest, in seconds. @type {[Intl.RelativeTimeFormatUnit, number][]} */
  const units = [
    ['day', 86_400],
    ['hour', 3_600],
    ['minute', 60],
    ['second', 1],
  ];

  /** @param {Date} moment */
  function distance(moment) {
    const seconds = Math.round((moment.getTime() - Date.now()) / 1000);
    const [unit, size] = units.find(([, length]) => Math.abs(seconds) >= length) ?? ['second', 1];
    return relative.format(Math.trunc(seconds / size), unit);
  }

  /** Times in the viewer's zone; the title keeps UTC. @param {ParentNode} root */
  function showTimes(root) {
    for (const element of root.querySelectorAll('time[datetime]')) {
      const time = /** @type {HTMLTimeElement} */ (element);
      const moment = new Date(time.dateTime);
      if (Number.isNaN(moment.getTime())) continue;
      const format = 'exact' in time.dataset ? exact : usual;
      time.textContent = 'relative' in time.dataset ? distance(moment) : format.format(moment);
    }
  }

  /** @param {ParentNode} root */
  function showCopyButtons(root) {
    if (!navigator.clipboard) return;
    for (const button of root.querySelectorAll('button[data-copy]')) button.removeAttribute('hidden');
  }

  /** @param {HTMLButtonElement} button */
  async function copy(button) {
    const text = button.closest('.copyable')?.querySelector('code')?.textContent ?? '';
    const label = [...button.childNodes];
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Select and copy it';
    }
    setTimeout(() => {
      button.replaceChildren(...label);
    }, 2_000);
  }

  /** Asks the browser's passkey, puts its answer into the form and sends it. @param {HTMLFormElement} form */
  async function askPasskey(form) {
    const problem = form.querySelector('[data-passkey-problem]');
    const { passkey, options = '{}', field = '' } = form.dataset;
    const library = /** @type {any} */ (window).SimpleWebAuthnBrowser;
    const tell = (/** @type {string} */ text) => {
      if (!(problem instanceof HTMLElement)) return;
      problem.textContent = text;
      problem.hidden = text === '';
    };
    tell('');
    try {
      const ask = passkey === 'create' ? library.startRegistration : library.startAuthentication;
      const answer = await ask({ optionsJSON: JSON.parse(options) });
      const input = form.elements.namedItem(field);
      if (input instanceof HTMLInputElement) input.value = JSON.stringify(answer);
      form.submit();
    } catch (error) {
      const name = error instanceof Error ? error.name : '';
      tell(
        name === 'InvalidStateError'
          ? 'This device has a passkey for you here already.'
          : 'The passkey was not given, or took too long. Try again, or use another way.',
      );
      sent.delete(form);
    }
  }

  /** Forms that are on their way, so that a double click sends one. @type {WeakSet<HTMLFormElement>} */
  const sent = new WeakSet();
  document.addEventListener('submit', (event) => {
    const form = event.target;
    if (!(form instanceof HTMLFormElement)) return;
    if (sent.has(form)) return void event.preventDefault();
    if (form.method !== 'post') return;
    sent.add(form);
    if (form.dataset.passkey === undefined) return;
    event.preventDefault();
    void askPasskey(form);
  });
  // A page that comes back by the back button has its forms anew.
  addEventListener('pageshow', (event) => {
    if (event.persisted) location.reload();
  });
  document.addEventListener('click', (event) => {
    const target = event.target instanceof Element ? event.target : null;
    const button = target?.closest('button[data-copy]');
    if (button instanceof HTMLButtonElement) void copy(button);
    for (const menu of document.querySelectorAll('details.menu[open]'))
      if (!menu.contains(target)) menu.removeAttribute('open');
  });
  document.addEventListener('keydown', (event) => {
    // A link that looks like a button is pressed like one.
    if (event.key === ' ' && event.target instanceof HTMLAnchorElement && event.target.role === 'button') {
      event.preventDefault();
      event.target.click();
    }
    if (event.key !== 'Escape') return;
    const open = document.querySelector('details.menu[open]');
    open?.removeAttribute('open');
    open?.querySelector('summary')?.focus();
  });

  /** Times that are typed are in the viewer's zone, unless the address says another. */
  function fillZone() {
    const zone = document.querySelector('input[data-zone]');
    if (!(zone instanceof HTMLInputElement) || zone.value !== '') return;
    zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone;
    for (const element of document.querySelectorAll('[data-zone-name]')) element.textContent = zone.value;
  }

  /** A form that was refused: to the first field that is wrong, else to the sentence on top. */
  function showProblem() {
    const wrong = document.querySelector(
      'main [aria-invalid="true"], main .choices:has(> .problem) input:not(:disabled)',
    );
    const problem = wrong ?? document.querySelector('main .notice-bad');
    if (!(problem instanceof HTMLElement)) return;
    if (wrong === null) problem.tabIndex = -1;
    problem.focus();
  }

  /** The states in each part that moves, as they were last seen. @type {Map<string, string[]>} */
  const states = new Map();

  /** @param {Element} part */
  const statesOf = (part) => [...part.querySelectorAll('.badge')].map(({ textContent }) => textContent ?? '');

  /** Says a state that has changed in a part that moves to whoever cannot see it: the part itself is taken out and put in anew, which screen readers pass over. @param {Element} part */
  function sayChange(part) {
    const before = states.get(part.id);
    if (before === undefined) return;
    const now = statesOf(part);
    states.set(part.id, now);
    const changed =
      now.length === before.length ? now.filter((state, index) => state !== before[index]) : ['The list has changed.'];
    const status = document.querySelector('[data-said]');
    if (status !== null && changed.length > 0) status.textContent = [...new Set(changed)].join(', ');
  }

  function start() {
    fillZone();
    for (const part of document.querySelectorAll('[hx-get][id]')) states.set(part.id, statesOf(part));
    showProblem();
    // On a phone the places do not fit beside each other.
    document.querySelector('nav.places [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
    showTimes(document);
    showCopyButtons(document);
    setInterval(() => showTimes(document), 15_000);
    new MutationObserver((changes) => {
      for (const { addedNodes } of changes)
        for (const node of addedNodes)
          if (node instanceof HTMLElement) {
            sayChange(node);
            showTimes(node.parentNode ?? node);
            showCopyButtons(node);
          }
    }).observe(document.body, { childList: true, subtree: true });
    document.body.dataset.ready = '';
  }
  start();
})();
