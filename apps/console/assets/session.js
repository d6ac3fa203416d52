// @ts-check
// Warns two minutes before a session ends, and when it has ended, so that input is not lost without
// notice (WCAG 2.2.1). Each page that is opened in any tab extends the session.
(() => {
  const found = document.querySelector('[data-session]');
  if (!(found instanceof HTMLElement)) return;
  const box = found;
  const text = /** @type {HTMLElement} */ (box.querySelector('p'));
  const stay = /** @type {HTMLElement} */ (box.querySelector('button'));
  const again = /** @type {HTMLElement} */ (box.querySelector('a'));
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
    look();
  }

  /** @param {string} words @param {HTMLElement | null} way */
  function say(words, way) {
    if (text.textContent !== words) text.textContent = words;
    for (const each of [stay, again]) each.hidden = each !== way;
    box.hidden = false;
  }

  function look() {
    const left = Math.min(idleEnd, end) - Date.now();
    if (left > warnMs) box.hidden = true;
    else if (left <= 0)
      say('You are signed out. Your input is still here: sign in in another tab, then submit it here.', again);
    else if (idleEnd < end) say('You will be signed out in two minutes because of inactivity.', stay);
    else say('Your session ends in two minutes. Submit your input before then.', null);
  }

  const tabs = new BroadcastChannel('org-api-session');
  tabs.addEventListener('message', ({ data }) => renew(data));

  stay.addEventListener('click', () => void use());
  async function use() {
    const answer = await fetch('/account', { redirect: 'error' }).catch(() => null);
    if (!answer?.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const now = page.querySelector('[data-session]');
    if (now instanceof HTMLElement) begin(now.dataset);
  }

  /** @param {DOMStringMap} of */
  function begin(of) {
    renew(of);
    tabs.postMessage({ ...of });
  }
  begin(box.dataset);
  setInterval(look, 5_000);
  document.addEventListener('visibilitychange', look);
})();
