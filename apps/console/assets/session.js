// @ts-check
// Warns two minutes before a session ends, and when it has ended, so that input is not lost without
// notice (WCAG 2.2.1). Each page that is opened in any tab extends the session.
(() => {
  const found = document.querySelector('[data-session]');
  if (!(found instanceof HTMLElement)) return;
  const box = found;
  const text = /** @type {HTMLElement} */ (box.querySelector('p'));
  const stay = /** @type {HTMLElement} */ (box.querySelector('button'));
  const signIn = /** @type {HTMLElement} */ (box.querySelector('a'));
  const warnMs = 120_000;
  /** Times of this browser's clock, in ms. */
  let idleEnd = 0;
  let end = 0;

  /**
   * Reads the idle time and the remaining time from a page. `leftMs` is present only in the last
   * hour. @param {DOMStringMap} of
   */
  function renew(of) {
    idleEnd = Date.now() + Number(of.idleMs);
    end = Date.now() + Number(of.leftMs ?? Number.POSITIVE_INFINITY);
    update();
  }

  /** @param {string} sentence @param {HTMLElement | null} action */
  function showNotice(sentence, action) {
    if (text.textContent !== sentence) text.textContent = sentence;
    for (const each of [stay, signIn]) each.hidden = each !== action;
    box.hidden = false;
  }

  function update() {
    const left = Math.min(idleEnd, end) - Date.now();
    if (left > warnMs) box.hidden = true;
    else if (left <= 0)
      showNotice('You are signed out. Your input is still here: sign in in another tab, then submit it here.', signIn);
    else if (idleEnd < end) showNotice('You will be signed out in two minutes because of inactivity.', stay);
    else showNotice('Your session ends in two minutes. Submit your input before then.', null);
  }

  const tabs = new BroadcastChannel('org-api-session');
  tabs.addEventListener('message', ({ data }) => renew(data));

  stay.addEventListener('click', () => void extendSession());
  async function extendSession() {
    const response = await fetch('/account', { redirect: 'error' }).catch(() => null);
    if (!response?.ok) return;
    const page = new DOMParser().parseFromString(await response.text(), 'text/html');
    const now = page.querySelector('[data-session]');
    if (now instanceof HTMLElement) begin(now.dataset);
  }

  /** @param {DOMStringMap} of */
  function begin(of) {
    renew(of);
    tabs.postMessage({ ...of });
  }
  begin(box.dataset);
  setInterval(update, 5_000);
  document.addEventListener('visibilitychange', update);
})();
