const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sample receiver</title>
<link rel="stylesheet" href="/page.css">
</head>
<body>
<h1>Sample receiver</h1>
<p>What came, newest first. Signatures are verified with the library <code>standardwebhooks</code>.</p>
<p id="switch">
  <button data-query="for=30s&amp;status=503">Answer 503 for 30 s</button>
  <button data-query="for=30s&amp;how=hang">Never answer for 30 s</button>
  <button data-query="for=30s&amp;how=reset">Reset connections for 30 s</button>
  <button data-query="for=0s">Answer as usual</button>
  <output id="failing"></output>
</p>
<form id="secret">
  <label>Endpoint <input name="endpoint" required pattern="[\\w\\-]{1,80}" placeholder="mine"></label>
  <label>Signing secret <input name="secret" required pattern="whsec_[A-Za-z0-9+\\/]{32}" autocomplete="off"></label>
  <button>Add signing secret</button>
  <output id="added"></output>
</form>
<p>A webhook’s URL ends with <code>/hooks/</code> and the name of its endpoint. The console shows its signing secret
once, when you add the webhook or rotate the secret. Webhooks that <code>npm start</code> added are known. An event is
late when a later one of its seat or grant was accepted before it: a receiver does not apply it.</p>
<table>
<thead><tr><th>Last</th><th>Endpoint</th><th>Type</th><th>Event</th><th>No.</th>
<th>Times</th><th>Duplicates</th><th>Order</th><th>Signature</th><th>Response</th></tr></thead>
<tbody id="deliveries"></tbody>
</table>
<p id="none">Nothing yet.</p>
<script src="/page.js"></script>
</body>
</html>
`;

const css = `:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 84rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8884; padding: 0.3rem 0.8rem 0.3rem 0; text-align: left; vertical-align: top; }
td { font-size: 0.875rem; }
td:nth-child(-n + 4) { overflow-wrap: anywhere; min-width: 5rem; }
form label { margin-right: 0.8rem; }
td.bad { color: #c22; font-weight: 600; }
button { font: inherit; }
`;

/** Cells are filled as text, never as markup: a received event may contain anything. */
const script = `const rows = document.getElementById('deliveries');
const failing = document.getElementById('failing');
async function show() {
  try {
    const { deliveries, failingForMs } = await (await fetch('/deliveries')).json();
    document.getElementById('none').hidden = deliveries.length > 0;
    failing.textContent = failingForMs > 0 ? 'failing for ' + Math.ceil(failingForMs / 1000) + ' s' : '';
    rows.replaceChildren(...deliveries.map((event) => {
      const row = document.createElement('tr');
      const signature = event.verified ? 'verified' : event.problem;
      const order = event.late ? 'late: not applied' : '';
      const { lastAt, endpoint, type, eventId, sequence, times, duplicates, response } = event;
      const values = [lastAt, endpoint, type, eventId, sequence ?? '', times, duplicates, order, signature, response];
      for (const [index, value] of values.entries()) {
        const cell = row.insertCell();
        cell.textContent = String(value);
        if ((index === 8 && !event.verified) || (index === 9 && event.response !== 204)) cell.className = 'bad';
      }
      return row;
    }));
  } catch {
    failing.textContent = 'the receiver does not answer';
  }
}
const added = document.getElementById('added');
document.getElementById('secret').addEventListener('submit', async (event) => {
  event.preventDefault();
  const { endpoint, secret } = Object.fromEntries(new FormData(event.target));
  const response = await fetch('/secrets', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ [endpoint]: [secret] }),
  });
  added.textContent = response.ok ? 'Added. The next attempt is verified with it.' : (await response.json()).message;
  if (response.ok) event.target.reset();
});
document.getElementById('switch').addEventListener('click', async ({ target }) => {
  if (target.dataset.query === undefined) return;
  await fetch('/fail?' + target.dataset.query, { method: 'POST' });
  show();
});
show();
setInterval(show, 1000);
`;

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'";

const file = (type: string, text: string) => ({
  headers: {
    'Content-Type': `${type}; charset=utf-8`,
    'Content-Security-Policy': policy,
    'X-Content-Type-Options': 'nosniff',
    'Cache-Control': 'no-cache',
  },
  text,
});

/**
 * Returns the receiver's page by path. It requests `/deliveries` each second and loads nothing from
 * other hosts.
 */
export const pageFiles: Record<string, ReturnType<typeof file>> = {
  '/': file('text/html', html),
  '/page.css': file('text/css', css),
  '/page.js': file('text/javascript', script),
};
