// @ts-check
// Times in the viewer's zone, copy buttons, passkeys, and forms that are submitted once. Every page
// works without this script, except passkeys.
(() => {
  const usual = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
  const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
  const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
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

  /** Times in the viewer's zone; the title keeps UTC. @param {ParentNode} root */
  function showTimes(root) {
    for (const element of root.querySelectorAll('time[datetime]')) {
      const time = /** @type {HTMLTimeElement} */ (element);
      const date = new Date(time.dateTime);
      if (Number.isNaN(date.getTime())) continue;
      const format = 'exact' in time.dataset ? exact : 'day' in time.dataset ? day : usual;
      time.textContent = 'relative' in time.dataset ? distance(date) : format.format(date);
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
      const answer = await ask({ optionsJSON: JSON.parse(options) });
      const input = form.elements.namedItem(field);
      if (input instanceof HTMLInputElement) input.value = JSON.stringify(answer);
      // A dialog submits its form itself.
      if (!form.dispatchEvent(new CustomEvent('passkey', { bubbles: true, cancelable: true }))) return;
      form.submit();
      showSending(form, form.querySelector('button[type="submit"]'));
    } catch (error) {
      const name = error instanceof Error ? error.name : '';
      showText(
        name === 'InvalidStateError'
          ? 'This device already has a passkey for your account.'
          : 'The passkey was cancelled or timed out. Try again, or use another method.',
      );
      sent.delete(form);
    }
  }

  /**
   * Forms that were submitted, so that a double click submits one. @type {WeakSet<HTMLFormElement>}
   */
  const sent = new WeakSet();

  /**
   * Shows that a form was submitted: a test event takes up to 20 seconds. @param {HTMLFormElement}
   * form @param {Element | null} button
   */
  function showSending(form, button) {
    form.setAttribute('aria-busy', 'true');
    if (!(button instanceof HTMLButtonElement)) return;
    // After a delay, so that the button does not flicker when the response is fast.
    setTimeout(() => {
      button.textContent = 'Submitting…';
      button.setAttribute('aria-busy', 'true');
      say('Submitting…');
    }, 400);
  }

  document.addEventListener('submit', (event) => {
    const form = event.target;
    if (!(form instanceof HTMLFormElement)) return;
    if (sent.has(form)) return void event.preventDefault();
    if (form.method !== 'post') return;
    sent.add(form);
    if (form.dataset.passkey === undefined) return showSending(form, event.submitter);
    event.preventDefault();
    void askPasskey(form);
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

  /** Typed times are in the viewer's zone, unless the URL names another. */
  function fillZone() {
    const zone = document.querySelector('input[data-zone]');
    if (!(zone instanceof HTMLInputElement) || zone.value !== '') return;
    zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone;
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

  /** Focuses the first invalid field of a refused form, else its problem. */
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
    const status = document.querySelector('[data-said]');
    // The same words are announced again only if the text changes.
    if (status !== null) status.textContent = status.textContent === words ? `${words}\u00A0` : words;
  }

  /** The last known badges of each live part. @type {Map<string, string[]>} */
  const states = new Map();
  /** Ids of the live parts that are not up to date. @type {Set<string>} */
  const late = new Set();

  /** @param {Element} part */
  const statesOf = (part) => [...part.querySelectorAll('.badge')].map(({ textContent }) => textContent ?? '');

  /**
   * Announces a changed badge of a live part: screen readers ignore the part itself, which is
   * replaced. @param {Element} part
   */
  function sayChange(part) {
    const before = states.get(part.id);
    if (before === undefined) return;
    const now = statesOf(part);
    states.set(part.id, now);
    const changed =
      now.length === before.length ? now.filter((state, index) => state !== before[index]) : ['The list has changed.'];
    if (late.delete(part.id)) changed.unshift('Up to date again');
    if (changed.length > 0) say([...new Set(changed)].join(', '));
  }

  /** @param {number} status of a response to a live part, 0 without one */
  function reasonOf(status) {
    if (status === 401) return 'you are signed out.';
    if (status === 0 || status >= 500) return 'the console does not respond. It tries again automatically.';
    return 'this is no longer available.';
  }

  /**
   * Shows once in a live part that it is not up to date, and why. It continues to request itself,
   * and the next response replaces this. @param {Element} part @param {number} status
   */
  function standStill(part, status) {
    const isSignedOut = status === 401;
    const words = `Not up to date: ${reasonOf(status)}`;
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

  // A live part is replaced only by itself: an error page or the sign-in page would empty it and
  // end its requests.
  document.addEventListener('htmx:before:swap', (event) => {
    const { ctx, tasks } = /** @type {CustomEvent} */ (event).detail;
    const part = ctx.sourceElement;
    const isItself = (/** @type {any} */ { fragment }) => fragment.firstElementChild?.id === part.id;
    if (ctx.response.status === 200 && tasks.length === 1 && tasks.every(isItself)) return;
    event.preventDefault();
    standStill(part, ctx.response.status);
  });
  document.addEventListener('htmx:error', (event) => {
    const part = /** @type {CustomEvent} */ (event).detail.ctx?.sourceElement;
    if (part instanceof Element && states.has(part.id)) standStill(part, 0);
  });

  /**
   * Streams of updates, by the id of their live part.
   * @type {Map<string, { close: () => void, resume: () => void }>}
   */
  const streams = new Map();
  /** Ids of the live parts with an open stream, which are not polled. @type {Set<string>} */
  const streamed = new Set();

  /**
   * Opens the stream of updates of a live part, and opens it again when it ends: after 2 s, and
   * later each time that it did not stay open. A hidden page has none, because browsers limit the
   * connections to one host. @param {string} id of the part
   */
  function followPart(id) {
    /** @type {EventSource | null} */
    let source = null;
    let openedAt = 0;
    let waitMs = 2_000;
    let timer = 0;
    const find = () => document.getElementById(id);
    const refresh = () => find()?.dispatchEvent(new Event('refresh'));

    function close() {
      clearTimeout(timer);
      timer = 0;
      if (source !== null && streamed.has(id) && Date.now() - openedAt > 30_000) waitMs = 2_000;
      source?.close();
      source = null;
      streamed.delete(id);
    }
    function reopen() {
      close();
      timer = setTimeout(follow, waitMs * (0.5 + Math.random()));
      waitMs = Math.min(waitMs * 2, 60_000);
    }
    function follow() {
      close();
      const part = find();
      const version = part?.dataset.version;
      if (part === null || version === undefined || document.hidden) return;
      const address = new URL(part.getAttribute('hx-get') ?? '', location.href);
      address.searchParams.set('version', version);
      source = new EventSource(address);
      source.addEventListener('open', () => {
        streamed.add(id);
        openedAt = Date.now();
      });
      source.addEventListener('changed', ({ data }) => {
        if (find()?.dataset.version !== data) refresh();
      });
      // The server ends a stream after some minutes, when it stops, and when the page may not be
      // shown.
      source.addEventListener('end', () => {
        reopen();
        refresh();
      });
      source.addEventListener('error', reopen);
    }
    /** Opens the stream unless it is open or about to open. A poll keeps the waiting time. */
    function resume() {
      if (source === null && timer === 0) follow();
    }
    streams.set(id, { close, resume });
    document.addEventListener('visibilitychange', follow);
    follow();
  }

  // A part is polled while it has no open stream, and while it is not up to date.
  document.addEventListener('htmx:config:request', (event) => {
    const { sourceElement: part, sourceEvent } = /** @type {CustomEvent} */ (event).detail.ctx;
    if (sourceEvent?.type === 'every' && streamed.has(part.id) && !late.has(part.id)) event.preventDefault();
  });

  /** Prepares what a response added to the page. @param {HTMLElement} node */
  function showAdded(node) {
    sayChange(node);
    if (node.dataset.version === undefined) streams.get(node.id)?.close();
    else streams.get(node.id)?.resume();
    showTimes(node.parentNode ?? node);
    showCopyButtons(node);
  }

  function start() {
    fillZone();
    for (const part of document.querySelectorAll('[hx-get][id]')) {
      states.set(part.id, statesOf(part));
      followPart(part.id);
    }
    showProblem();
    showTimes(document);
    showCopyButtons(document);
    setInterval(() => showTimes(document), 15_000);
    new MutationObserver((changes) => {
      for (const { addedNodes } of changes)
        for (const node of addedNodes) if (node instanceof HTMLElement) showAdded(node);
    }).observe(document.body, { childList: true, subtree: true });
    document.body.dataset.ready = '';
    openLink();
  }
  start();
})();
