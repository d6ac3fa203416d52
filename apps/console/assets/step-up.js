// @ts-check
// Asks for the second factor in a dialog above the form that needs it, so that the form keeps its
// input and its place. Without this script, a page asks.
(() => {
  /** Forms that may be submitted now. @type {WeakSet<HTMLFormElement>} */
  const confirmed = new WeakSet();
  /** Forms whose check is in progress. @type {WeakSet<HTMLFormElement>} */
  const checking = new WeakSet();
  /**
   * The form that waits for the open dialog.
   * @type {{ form: HTMLFormElement, submitter: HTMLElement | null } | null}
   */
  let waiting = null;

  const dialog = document.createElement('dialog');
  dialog.className = 'dialog';
  dialog.setAttribute('aria-label', 'Confirm your identity');
  document.body.append(dialog);

  /**
   * Asks the server whether a form may be submitted; it carries nothing out. Returns the question
   * for the second factor; null when there is none, also when the server cannot be reached.
   * @param {HTMLFormElement} form @param {HTMLElement | null} submitter
   * @param {HTMLFormElement} [factor] the form of the dialog
   */
  async function check(form, submitter, factor) {
    const fields = new FormData(form, submitter);
    for (const [name, value] of factor ? new FormData(factor) : []) if (!fields.has(name)) fields.append(name, value);
    const body = new URLSearchParams(/** @type {any} */ (fields));
    const headers = { 'X-Step-Up-Check': 'yes' };
    const response = await fetch(form.action, { method: 'POST', body, headers }).catch(() => null);
    if (response === null) return null;
    renewTokens(response.headers.get('X-Form-Token'));
    if (response.status === 204) return null;
    const page = new DOMParser().parseFromString(await response.text(), 'text/html');
    await loadScripts(page);
    return page.getElementById('step-up');
  }

  /** Gives every form the token of the renewed session. @param {string | null} token */
  function renewTokens(token) {
    if (token === null) return;
    for (const input of document.querySelectorAll('input[name="_token"]')) input.setAttribute('value', token);
  }

  /** Loads the scripts of a page that this one lacks: that of passkeys. @param {Document} page */
  async function loadScripts(page) {
    for (const { src } of page.querySelectorAll('head script[src]')) {
      const path = new URL(src, location.href).pathname;
      if (document.querySelector(`script[src="${path}"]`)) continue;
      const script = document.createElement('script');
      script.src = path;
      await new Promise((done) => {
        script.onload = script.onerror = done;
        document.head.append(script);
      });
    }
  }

  /** @param {Element} question */
  function show(question) {
    dialog.replaceChildren(...question.childNodes);
    if (!dialog.open) dialog.showModal();
    const field = dialog.querySelector('[aria-invalid="true"], [autofocus]');
    if (field instanceof HTMLElement) field.focus();
  }

  /**
   * Submits the form that waited.
   * @param {HTMLFormElement} form @param {HTMLElement | null} submitter
   */
  function submit(form, submitter) {
    waiting = null;
    dialog.close();
    confirmed.add(form);
    form.requestSubmit(submitter);
  }

  /** @param {HTMLFormElement} form @param {HTMLElement | null} submitter */
  async function ask(form, submitter) {
    checking.add(form);
    form.setAttribute('aria-busy', 'true');
    const question = await check(form, submitter);
    form.removeAttribute('aria-busy');
    checking.delete(form);
    if (question === null) return submit(form, submitter);
    waiting = { form, submitter };
    show(question);
  }

  /** Sends the factor of the dialog. @param {HTMLFormElement} factor */
  async function respond(factor) {
    if (waiting === null) return;
    const { form, submitter } = waiting;
    factor.setAttribute('aria-busy', 'true');
    const question = await check(form, submitter, factor);
    // The dialog may have been cancelled meanwhile.
    if (waiting?.form !== form) return;
    if (question === null) submit(form, submitter);
    else show(question);
  }

  // Before the listeners of console.js.
  document.addEventListener(
    'submit',
    (event) => {
      const form = event.target;
      if (!(form instanceof HTMLFormElement)) return;
      const isFactor = dialog.contains(form);
      const isPasskey = form.dataset.passkey !== undefined;
      if (isPasskey || (!isFactor && form.dataset.stepUp === undefined)) return;
      if (confirmed.delete(form)) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      if (isFactor) void respond(form);
      else if (!checking.has(form)) void ask(form, event.submitter);
    },
    { capture: true },
  );
  dialog.addEventListener('passkey', (event) => {
    event.preventDefault();
    if (event.target instanceof HTMLFormElement) void respond(event.target);
  });
  dialog.addEventListener('click', ({ target }) => {
    if (target instanceof Element && target.closest('[data-close]')) dialog.close();
  });
  dialog.addEventListener('close', () => {
    waiting = null;
    dialog.replaceChildren();
  });
})();
