/** A webhook receiver: WEBHOOK_SECRET=whsec_… PORT=3000 node receiver.mjs */
import { createServer } from 'node:http';
import { verifyWithStandardWebhooks } from './verify.mjs';

const secret = process.env.WEBHOOK_SECRET;
const port = Number(process.env.PORT ?? 3000);
const bodyLimitBytes = 256 * 1024;
if (!secret) {
  console.error('WEBHOOK_SECRET is missing: set it to the secret shown when the webhook was created.');
  process.exit(2);
}

// In memory for the example. In production, use a table with the event's id as its key, and write
// it in the transaction that does the work.
const seen = new Set();

async function receive(request, response) {
  const respond = (status, text = '') => response.writeHead(status, { 'Content-Type': 'text/plain' }).end(text);
  if (request.method !== 'POST') return respond(405, 'POST only\n');
  const body = await readBody(request);
  if (!body) return respond(413, 'too large\n');
  try {
    verifyWithStandardWebhooks(body, request.headers, secret);
  } catch {
    return respond(400, 'the signature does not verify\n');
  }
  const event = JSON.parse(body.toString('utf8'));
  // A test event is accepted like any other and never acted on: the ids in its data name nothing.
  if (event.test !== true && !seen.has(event.id)) {
    seen.add(event.id);
    handle(event);
  }
  respond(204); // a repeat is answered with success too, or it would be sent again
}

/**
 * Your part, for each genuine event once. Whatever may take long belongs in a queue: the response is
 * due within 10 seconds.
 */
function handle(event) {
  console.log(`${event.type} ${event.id}`);
}

/**
 * The body's bytes, exactly as they came: the signature covers them and not the JSON. Null when
 * there are too many.
 */
async function readBody(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size <= bodyLimitBytes) chunks.push(chunk);
  }
  return size > bodyLimitBytes ? null : Buffer.concat(chunks);
}

const server = createServer((request, response) => {
  receive(request, response).catch(() => response.destroy()); // the sender went away: it comes again
});
server.listen(port, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
