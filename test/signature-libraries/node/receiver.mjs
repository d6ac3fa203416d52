/** A webhook receiver: WEBHOOK_SECRET=whsec_… PORT=3000 node receiver.mjs */
import { createServer } from 'node:http';
import { Events } from './events.mjs';
import { readSecrets } from './secrets.mjs';
import { verifyWithStandardWebhooks } from './verify.mjs';

const port = Number(process.env.PORT ?? 3000);
const bodyLimitBytes = 256 * 1024;
const events = new Events();
let getSecrets;
try {
  getSecrets = readSecrets(process.env.WEBHOOK_SECRET ?? '');
} catch (error) {
  console.error(error.message);
  process.exit(2);
}

async function receive(request, response) {
  const respond = (status, text = '') => response.writeHead(status, { 'Content-Type': 'text/plain' }).end(text);
  if (request.method !== 'POST') return respond(405, 'POST only\n');
  const body = await readBody(request);
  if (!body) return respond(413, 'too large\n');
  const { 'webhook-endpoint': endpoint, 'webhook-sequence': sequence } = request.headers;
  if (!getSecrets(endpoint).some((secret) => isGenuine(body, request.headers, secret)))
    return respond(400, 'the signature does not verify\n');
  const event = JSON.parse(body.toString('utf8'));
  if (events.isDue(event, { endpoint, sequence })) handle(event);
  respond(204); // what is not due is answered with success too, or it would be sent again
}

function isGenuine(body, headers, secret) {
  try {
    verifyWithStandardWebhooks(body, headers, secret);
    return true;
  } catch {
    return false;
  }
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
