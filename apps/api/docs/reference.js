/**
 * Runs in the reader's browser. The page is complete without it: this adds the search, buttons that copy, the mark
 * of the section in view, and requests with the reader's key. The key is in a field of the page and in the request,
 * and nowhere else (docs/adr/0148). Text is inserted as text only: the page's policy allows nothing else.
 */
const find = (id) => document.getElementById(id);

/** The language of the samples is the only thing that the page remembers. */
const languages = [...document.querySelectorAll('[name=language]')];
const remembered = languages.find(({ value }) => value === read('language'));
if (remembered) remembered.checked = true;
for (const radio of languages) radio.addEventListener('change', () => remember('language', radio.value));

function read(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null; // the browser keeps nothing for this page
  }
}

function remember(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // The choice holds for this visit.
  }
}

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

const rows = [...document.querySelectorAll('section.row')];
const title = (row) => row.querySelector('h1, h2, h3').textContent;

/* Copying */
for (const row of rows) for (const code of row.querySelectorAll('pre')) addCopyButton(code, title(row));

function addCopyButton(code, context) {
  const caption = code.previousElementSibling;
  const ariaLabel = `Copy: ${context}: ${caption.textContent}`;
  const button = element('button', { type: 'button', className: 'copy', textContent: 'Copy', ariaLabel });
  button.addEventListener('click', async () => {
    const isCopied = await navigator.clipboard.writeText(code.textContent).then(
      () => true,
      () => false,
    );
    button.textContent = isCopied ? 'Copied' : 'Select and copy';
    setTimeout(() => {
      button.textContent = 'Copy';
    }, 2_000);
  });
  caption.append(button);
}

/* Navigation */
const links = new Map([...document.querySelectorAll('nav a[href^="#"]')].map((link) => [link.hash.slice(1), link]));
const contents = document.querySelector('nav details');
const isNarrow = matchMedia('(max-width: 61.99rem)');
if (isNarrow.matches) contents.open = false;
isNarrow.addEventListener('change', () => {
  contents.open = !isNarrow.matches;
});
const observer = new IntersectionObserver(markCurrent, { rootMargin: '-25% 0px -70%' });
for (const row of rows) observer.observe(row);

function markCurrent(entries) {
  const current = entries.find(({ isIntersecting }) => isIntersecting);
  if (!current) return;
  document.querySelector('nav [aria-current]')?.removeAttribute('aria-current');
  const link = links.get(current.target.id);
  link?.setAttribute('aria-current', 'location');
  if (!isNarrow.matches) link?.scrollIntoView({ block: 'nearest' });
}

/* Search */
const search = find('search');
const results = find('results');
search.closest('search').hidden = false;
search.addEventListener('input', showResults);
document.addEventListener('keydown', (event) => {
  const isTyping = event.target.closest('input');
  if (event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    search.focus();
  }
  if (event.key !== 'Escape') return;
  closeResults();
  closeKeyBox();
});
search.closest('search').addEventListener('keydown', (event) => {
  if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
  const stops = [search, ...results.querySelectorAll('a')];
  event.preventDefault();
  stops[stops.indexOf(document.activeElement) + (event.key === 'ArrowDown' ? 1 : -1)]?.focus();
});
document.addEventListener('click', (event) => {
  if (!event.target.closest('search') || event.target.closest('#results a')) closeResults();
  if (!event.target.closest('#key-box, .try')) closeKeyBox();
});

function closeResults() {
  if (results.contains(document.activeElement)) search.focus();
  results.hidden = true;
}

let index;

/** Returns the sections as text, made when the first search begins: its own words before those of its code. */
function sections() {
  index ??= rows.map((row) => {
    const parts = row.querySelectorAll(
      '.text :is(p, li, dt, dd > p, td, summary), .sample.curl pre, div > .box:not(.sample) pre',
    );
    const text = [...parts].map((part) => part.textContent.trim()).join(' · ');
    return { id: row.id, title: title(row), text: text.replace(/\s+/g, ' ') };
  });
  return index;
}

/** Shows the sections that contain all words, in any order: those with a word in their title first. */
function showResults() {
  const words = search.value
    .toLowerCase()
    .split(/[\s_]+/)
    .filter(Boolean);
  const has = (text) => (word) => text.toLowerCase().includes(word);
  const found = sections()
    .filter(({ title, text }) => words.every(has(`${title} ${text}`)))
    .map((section) => ({ ...section, rank: words.filter(has(section.title)).length }))
    .sort((one, other) => other.rank - one.rank);
  results.hidden = words.length === 0;
  results.querySelector('p').textContent = found.length === 0 ? 'Nothing found.' : `${found.length} found`;
  results.querySelector('ol').replaceChildren(...found.map((section) => element('li', {}, result(section, words))));
}

function result({ id, title, text }, words) {
  return element('a', { href: `#${id}` }, title, element('span', {}, ...snippet(text, words)));
}

/** Returns the text around the first word that it contains, with every word marked. */
function snippet(text, words) {
  const lower = text.toLowerCase();
  const first = Math.min(...words.map((word) => lower.indexOf(word)).filter((at) => at >= 0));
  const from = Number.isFinite(first) && first > 50 ? text.lastIndexOf(' ', first - 50) + 1 : 0;
  const to = from + 150 < text.length ? text.lastIndexOf(' ', from + 150) : text.length;
  const escaped = words.map((word) => word.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  const shown = `${from > 0 ? '… ' : ''}${text.slice(from, to)}${to < text.length ? ' …' : ''}`;
  return shown
    .split(new RegExp(`(${escaped.join('|')})`, 'gi'))
    .map((part, at) => (at % 2 === 1 ? element('mark', { textContent: part }) : part));
}

/* Requests */
const keyBox = find('key-box');
/** The read that the key box was opened for. */
let waiting = null;
keyBox.hidden = false;
keyBox.querySelector('form').addEventListener('submit', (event) => {
  event.preventDefault();
  const form = waiting;
  closeKeyBox();
  if (form) send(form);
});

/** Closes the key box. The focus in it goes back to where the box was opened. */
function closeKeyBox() {
  if (keyBox.contains(document.activeElement)) (waiting?.querySelector('button') ?? keyBox.firstChild).focus();
  keyBox.open = false;
  waiting = null;
}
addEventListener('pagehide', () => {
  find('api-key').value = ''; // also for a page that comes back from the browser's memory
  for (const response of document.querySelectorAll('.try .box')) response.remove();
});
for (const form of document.querySelectorAll('form.try')) {
  form.hidden = false;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    send(form);
  });
}

async function send(form) {
  const output = form.querySelector('output');
  const [key, orgId] = [find('api-key').value.trim(), find('org-id').value.trim()];
  form.querySelector('.box')?.remove();
  if (key === '' || orgId === '') {
    output.textContent = 'Enter your key and the organization’s ID first.';
    waiting = form;
    keyBox.open = true;
    find(key === '' ? 'api-key' : 'org-id').focus();
    return;
  }
  closeKeyBox();
  output.textContent = 'Sending…';
  try {
    const response = await fetch(form.dataset.path.replace('{orgId}', encodeURIComponent(orgId)), {
      headers: { Authorization: `Bearer ${key}` },
      credentials: 'omit',
      cache: 'no-store',
      redirect: 'error',
    });
    form.append(responseBox(response, await response.text()));
    output.textContent = `Status ${response.status}`;
  } catch {
    output.textContent = 'No response. Check your connection and that the key has no other characters.';
  }
}

const shownHeaders = ['ETag', 'RateLimit', 'Retry-After', 'Key-Expires', 'Request-Id'];
const mostShown = 20_000;

/** Returns the response as text: headers that partners use, and the first characters of the body. */
function responseBox({ status, headers }, body) {
  const lines = shownHeaders.filter((name) => headers.has(name)).map((name) => `${name}: ${headers.get(name)}`);
  const text = indent(body);
  const rest = text.length > mostShown ? `\n… and ${text.length - mostShown} more characters` : '';
  const code = element('pre', {
    tabIndex: 0,
    role: 'group',
    ariaLabel: 'Your response',
    textContent: `${lines.join('\n')}\n\n${text.slice(0, mostShown)}${rest}`,
  });
  const kind = status < 400 ? 'good' : 'bad';
  const caption = element('figcaption', {}, element('b', { className: kind, textContent: status }), 'Your response');
  const box = element('figure', { className: 'box' }, caption, code);
  addCopyButton(code, 'request');
  return box;
}

function indent(body) {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
