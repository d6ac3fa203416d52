/**
 * Checks captured deliveries with each library: node check.mjs < captured.jsonl. The format and the
 * exit codes are in ../README.md.
 */
import { text } from 'node:stream/consumers';
import { verifyWithStandardWebhooks, verifyWithStripe, verifyWithSvix } from './verify.mjs';

const libraries = [
  ['stripe', verifyWithStripe],
  ['standardwebhooks', verifyWithStandardWebhooks],
  ['svix', verifyWithSvix],
];

const lines = (await text(process.stdin)).split('\n').filter((line) => line.trim() !== '');
let rejected = 0;
for (const [index, line] of lines.entries()) {
  const { headers, body, secret } = JSON.parse(line);
  const byName = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  for (const [library, verify] of libraries) {
    try {
      verify(Buffer.from(body, 'base64'), byName, secret);
      console.log(`${index + 1} ${library} accepted`);
    } catch (error) {
      rejected += 1;
      console.log(`${index + 1} ${library} rejected: ${error.message.trim().split('\n')[0]}`);
    }
  }
}
process.exitCode = rejected > 0 || lines.length === 0 ? 1 : 0;
