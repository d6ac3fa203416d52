// @ts-check
// Times in the zone of the organization or the viewer, copy buttons, passkeys, and forms that are
// submitted once. Every page works without this script, except passkeys.
(() => {
  // The zone that the organization chose, else the viewer's: a formatter cannot be given some of those.
  const timeZone = document.documentElement.dataset.timeZone || undefined;
  const usual = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short', timeZone });
  const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone });
  const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', timeZone });
  const zoned = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long', timeZone });
  const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });
  /** Units from the largest, in seconds. @type {[Intl.RelativeTimeFormatUnit, number][]} */
  const units = [
    ['day', 86_400],
    ['hour', 3_600],
    ['minute', 60],
    ['second', 1],
  ];

  /** @param {Date} date */
  function distance(date) {
    const seconds = Math.round((date.getTime() - Date.now()) / 1000);
    const [unit, size] = units.find(([, length]) => Math.abs(seconds) >= length) ?? ['second', 1];
    return relative.format(Math.trunc(seconds / size), unit);
  }

  /** Formats a time that does not wrap before AM or PM. @param {Intl.DateTimeFormat} format @param {Date} date */
  function write(format, date) {
    const parts = format.formatToParts(date);
    const isBeforePeriod = (/** @type {number} */ index) => parts[index + 1]?.type === 'dayPeriod';
    return parts.map(({ value }, index) => (isBeforePeriod(index) ? value.replace(/\s$/, '\u00a0') : value)).join('');
  }

  /**
   * Names the zone of a time that occurs twice, as summer time ends. @param {Intl.DateTimeFormat}
   * format @param {Date} date
   */
  function unambiguous(format, date) {
    const text = write(format, date);
    const isRepeated = [-3_600_000, 3_600_000].some((ms) => write(format, new Date(date.getTime() + ms)) === text);
    const zone = zoned.formatToParts(date).find(({ type }) => type === 'timeZoneName')?.value ?? '';
    return isRepeated ? `${text} ${zone}` : text;
  }

  /** @param {Date} date @param {DOMStringMap} how */
  function describeTime(date, how) {
    if ('relative' in how) return distance(date);
    if ('zoned' in how) return write(zoned, date);
    return 'day' in how ? day.format(date) : unambiguous('exact' in how ? exact : usual, date);
  }

  /** Times in that zone; the title keeps UTC. @param {ParentNode} root */
  function showTimes(root) {
    for (const element of root.querySelectorAll('time[datetime]')) {
      const time = /** @type {HTMLTimeElement} */ (element);
      const date = new Date(time.dateTime);
      if (Number.isNaN(date.getTime())) continue;
      const text = describeTime(date, time.dataset);
      // Writing the same text would lose a selection in it.
      if (time.textContent !== text) time.textContent = text;
    }
  }

  /** @param {ParentNode} root */
  function showCopyButtons(root) {
    if (!navigator.clipboard) return;
    for (const button of root.querySelectorAll('button[data-copy]')) button.removeAttribute('hidden');
  }

  /** @param {HTMLButtonElement} button */
  async function copy(button) {
    const beside = button.closest('.copyable')?.querySelector('code')?.textContent;
    const text = button.dataset.copy || beside || '';
    const label = [...button.childNodes];
    const isIcon = button.matches('.copy-button');
    const isCopied = await navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
    const words = isCopied ? 'Copied' : 'Select and copy the text';
    say(words);
    if (isIcon && isCopied) button.dataset.copied = '';
    if (!isIcon) button.textContent = words;
    setTimeout(() => {
      delete button.dataset.copied;
      if (!isIcon) button.replaceChildren(...label);
    }, 2_000);
  }

  /** Shows a typed password, or hides it again. @param {HTMLButtonElement} button */
  function togglePassword(button) {
    const input = document.getElementById(button.dataset.show ?? '');
    if (!(input instanceof HTMLInputElement)) return;
    const isHidden = input.type === 'password';
    input.type = isHidden ? 'text' : 'password';
    button.textContent = isHidden ? 'Hide password' : 'Show password';
  }

  /**
   * Asks the browser for a passkey, puts its response into the form and submits it. @param
   * {HTMLFormElement} form
   */
  async function askPasskey(form) {
    const problem = form.querySelector('[data-passkey-problem]');
    const { passkey, options = '{}', field = '' } = form.dataset;
    const library = /** @type {any} */ (window).SimpleWebAuthnBrowser;
    const showText = (/** @type {string} */ text) => {
      if (!(problem instanceof HTMLElement)) return;
      problem.textContent = text;
      problem.hidden = text === '';
    };
    showText('');
    try {
      const ask = passkey === 'create' ? library.startRegistration : library.startAuthentication;
      const response = await ask({ optionsJSON: JSON.parse(options) });
      const input = form.elements.namedItem(field);
      if (input instanceof HTMLInputElement) input.value = JSON.stringify(response);
      // A dialog submits its form itself.
      if (!form.dispatchEvent(new CustomEvent('passkey', { bubbles: true, cancelable: true }))) return;
      submitted = form;
      form.submit();
    } catch (error) {
      const name = error instanceof Error ? error.name : '';
      showText(
        name === 'InvalidStateError'
          ? 'This device already has a passkey for your account.'
          : 'The passkey was cancelled or timed out. Try again, or use another method.',
      );
      sending.get(form)?.();
    }
  }

  /**
   * Ends what shows that a form is being submitted. @type {WeakMap<HTMLFormElement, () => void>}
   */
  const sending = new WeakMap();
  /**
   * After this time a form can be submitted again, also in a browser that reports no stopped one.
   */
  const longestSendingMs = 30_000;

  /**
   * Keeps a form from being submitted twice, and shows that it was submitted: a test event takes up
   * to 20 seconds. @param {HTMLFormElement} form @param {Element | null} button
   */
  function startSending(form, button) {
    const label = button instanceof HTMLButtonElement ? [...button.childNodes] : [];
    // After a delay, so that the button does not flicker when the response is fast.
    const shown = setTimeout(() => {
      if (label.length === 0) return;
      button?.replaceChildren('Submitting…');
      say('Submitting…');
    }, 400);
    const ended = setTimeout(() => sending.get(form)?.(), longestSendingMs);
    form.setAttribute('aria-busy', 'true');
    sending.set(form, () => {
      clearTimeout(shown);
      clearTimeout(ended);
      sending.delete(form);
      form.removeAttribute('aria-busy');
      if (label.length > 0) button?.replaceChildren(...label);
    });
  }

  document.addEventListener('submit', (event) => {
    const form = event.target;
    if (!(form instanceof HTMLFormElement) || form.method !== 'post') return;
    if (sending.has(form)) return void event.preventDefault();
    // Browsers remember what was typed into a text field.
    for (const input of form.querySelectorAll('input[autocomplete$="password"]'))
      input.setAttribute('type', 'password');
    startSending(form, event.submitter);
    submitted = form;
    if (form.dataset.passkey === undefined) return;
    event.preventDefault();
    void askPasskey(form);
  });

  // An address has no fields of a filter that are empty.
  document.addEventListener('formdata', ({ target, formData }) => {
    if (!(target instanceof HTMLFormElement) || target.method !== 'get') return;
    for (const [name, value] of [...formData]) if (value === '') formData.delete(name);
  });

  /** The form whose navigation begins. @type {HTMLFormElement | null} */
  let submitted = null;
  // A form whose navigation was stopped (Esc, Stop, a link) can be submitted again.
  /** @type {any} */ (window).navigation?.addEventListener('navigate', (/** @type {any} */ { formData, signal }) => {
    const form = submitted;
    if (formData === null || form === null) return;
    signal.addEventListener('abort', () => sending.get(form)?.());
  });
  /** @param {EventTarget | null} target */
  function closeMenusWithout(target) {
    for (const menu of document.querySelectorAll('details.menu[open]'))
      if (!(target instanceof Node && menu.contains(target))) menu.removeAttribute('open');
  }
  // A page restored by the back button is reloaded, so that its forms are new.
  addEventListener('pageshow', (event) => {
    if (event.persisted) location.reload();
  });
  document.addEventListener('click', (event) => {
    const target = event.target instanceof Element ? event.target : null;
    const button = target?.closest('button[data-copy]');
    if (button instanceof HTMLButtonElement) void copy(button);
    const show = target?.closest('button[data-show]');
    if (show instanceof HTMLButtonElement) togglePassword(show);
    closeMenusWithout(target);
  });
  // An open menu would cover a focused control below it.
  document.addEventListener('focusin', (event) => closeMenusWithout(event.target));
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    const open = document.querySelector('details.menu[open]');
    open?.removeAttribute('open');
    open?.querySelector('summary')?.focus();
  });

  /**
   * Typed times are in the zone of the shown ones, unless a time is set already. A browser that cannot tell
   * its zone (`Etc/Unknown`) shows UTC.
   */
  function fillZone() {
    const zone = document.querySelector('input[data-zone]');
    const name = usual.resolvedOptions().timeZone;
    if (!(zone instanceof HTMLInputElement) || zone.value !== '' || !name || name === 'Etc/Unknown') return;
    zone.value = name;
    for (const element of document.querySelectorAll('[data-zone-name]')) element.textContent = zone.value;
  }

  /**
   * Moves the token of a one-time link from the URL's fragment, and so from the history, into the
   * form, and submits it.
   */
  function openLink() {
    const form = document.querySelector('form[data-fragment]');
    const token = location.hash.slice(1);
    if (!(form instanceof HTMLFormElement) || token === '') return;
    history.replaceState(null, '', location.pathname);
    const input = form.elements.namedItem(form.dataset.fragment ?? '');
    if (input instanceof HTMLInputElement) input.value = token;
    form.requestSubmit();
  }
  addEventListener('hashchange', openLink);

  /** Focuses the first invalid field of a rejected form, else its problem. */
  function showProblem() {
    const wrong = document.querySelector(
      'main [aria-invalid="true"], main .choices:has(> .problem) input:not(:disabled)',
    );
    const problem = wrong ?? document.querySelector('main .notice-bad[role="alert"]');
    if (!(problem instanceof HTMLElement)) return;
    if (wrong === null) problem.tabIndex = -1;
    problem.focus();
  }

  /** @param {string} words announced to screen readers */
  function say(words) {
    const status = document.querySelector('[data-announcement]');
    // The same words are announced again only if the text changes.
    if (status !== null) status.textContent = status.textContent === words ? `${words}\u00A0` : words;
  }

  /** The last known badges of each refreshing part. @type {Map<string, string[]>} */
  const states = new Map();
  /** Ids of the refreshing parts that are not up to date. @type {Set<string>} */
  const late = new Set();

  /** @param {Element} part */
  const listStates = (part) => [...part.querySelectorAll('.badge')].map(({ textContent }) => textContent ?? '');

  /**
   * Announces a changed badge of a refreshing part: screen readers ignore the part itself. @param
   * {Element} part
   */
  function sayChange(part) {
    const before = states.get(part.id);
    if (before === undefined) return;
    const now = listStates(part);
    states.set(part.id, now);
    const changed =
      now.length === before.length ? now.filter((state, index) => state !== before[index]) : ['The list has changed.'];
    if (late.delete(part.id)) changed.unshift('Up to date again');
    if (changed.length > 0) say([...new Set(changed)].join(', '));
  }

  /** @param {number} status of a response to a refreshing part, 0 without one */
  function describeReason(status) {
    if (status === 401) return 'you are signed out.';
    if (status === 0 || status >= 500) return 'the console does not respond. It tries again automatically.';
    return 'this is no longer available.';
  }

  /**
   * Shows once in a refreshing part that it is not up to date, and why. It continues to request itself,
   * and the next response removes this. @param {Element} part @param {number} status
   */
  function standStill(part, status) {
    const isSignedOut = status === 401;
    const words = `Not up to date: ${describeReason(status)}`;
    const known = part.querySelector(':scope > [data-late]');
    if (known?.getAttribute('data-late') === words) return;
    known?.remove();
    const note = document.createElement('p');
    note.className = 'notice notice-warning';
    note.dataset.late = words;
    note.textContent = `${words} `;
    if (status !== 0 && status < 500) {
      const link = document.createElement('a');
      link.href = location.href;
      link.textContent = isSignedOut ? 'Sign in again' : 'Reload the page';
      note.append(link);
    }
    part.prepend(note);
    late.add(part.id);
    if (part instanceof HTMLElement) delete part.dataset.version;
    say(words);
  }

  /** Whether the focus is in the refreshing part that changes. */
  let hasFocus = false;
  // A refreshing part becomes only itself, and only when it has changed: an error page or the sign-in page
  // would empty it and end its requests. What is the same keeps its elements, and so the focus,
  // selected text, checks and what is open.
  document.addEventListener('htmx:before:swap', (event) => {
    const { ctx, tasks } = /** @type {CustomEvent} */ (event).detail;
    const part = ctx.sourceElement;
    const isItself = (/** @type {any} */ { fragment }) => fragment.firstElementChild?.id === part.id;
    const isUpdate = ctx.response.status === 200 && tasks.length === 1 && tasks.every(isItself);
    const isSame = (/** @type {any} */ { fragment }) =>
      part.dataset.version !== undefined && fragment.firstElementChild.dataset.version === part.dataset.version;
    if (isUpdate && !tasks.every(isSame)) {
      hasFocus = part.contains(document.activeElement);
      showTimes(tasks[0].fragment);
      return void showCopyButtons(tasks[0].fragment);
    }
    event.preventDefault();
    if (!isUpdate) standStill(part, ctx.response.status);
  });
  document.addEventListener('htmx:after:swap', (event) => {
    const part = /** @type {CustomEvent} */ (event).detail.ctx.sourceElement;
    sayChange(part);
    // The focused control is there no more.
    if (hasFocus && !part.contains(document.activeElement)) part.focus({ preventScroll: true });
  });
  document.addEventListener('htmx:error', (event) => {
    const part = /** @type {CustomEvent} */ (event).detail.ctx?.sourceElement;
    if (part instanceof Element && states.has(part.id)) standStill(part, 0);
  });

  // A hidden page requests nothing, and catches up when it is shown.
  document.addEventListener('htmx:config:request', (event) => {
    if (document.hidden) event.preventDefault();
  });
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) return;
    for (const id of states.keys()) document.getElementById(id)?.dispatchEvent(new Event('refresh'));
  });

  function start() {
    fillZone();
    for (const part of document.querySelectorAll('[hx-get][id]')) states.set(part.id, listStates(part));
    showProblem();
    showTimes(document);
    showCopyButtons(document);
    for (const button of document.querySelectorAll('button[data-show]')) button.removeAttribute('hidden');
    setInterval(() => showTimes(document), 15_000);
    document.body.dataset.ready = '';
    openLink();
  }
  start();
})();
