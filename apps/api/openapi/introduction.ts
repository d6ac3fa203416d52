import { type ErrorCode, errorCodes, errorHelp, errorStatus } from '#domain/contract/errors.ts';
import {
  failedAuthenticationsPerMinute,
  requestsPerWindow,
  requestWindowSeconds,
  validKeysPerOrganization,
} from '#domain/contract/limits.ts';
import { type Region, regionCodes, regions } from '#domain/contract/regions.ts';
import { eventBytesAtMost } from '#domain/webhooks/limits.ts';
import { exampleOrgId, exampleSecret } from './examples.ts';

/** Returns what partners read before the operations, in Markdown: `info.description`. */
export function introduction(baseUrls: Record<Region, string>): string {
  return [reads(baseUrls), keys, limits, caching, errors, events, promises].join('\n\n');
}

const reads = (baseUrls: Record<Region, string>) => {
  const rows = regionCodes.map((code) => {
    const { name, keyPrefix } = regions[code];
    return `| ${name} | \`${baseUrls[code]}\` | \`${keyPrefix}\` |`;
  });
  return `\
An organization’s own systems read its data here, and are notified when it changes: the record of the organization,
its members and roles, the roster of
client families (names and dates only), seats, referral codes and earnings, and de-identified outcomes. Every
operation is a read. A family’s messages,
documents, money and records cannot be reached, whatever access the organization’s professionals hold.

# Get started

Data is kept per country, on two servers. A key works only on the server of its region.

| Region | Server | Keys begin with |
| --- | --- | --- |
${rows.join('\n')}

\`\`\`bash
curl -i -H 'Authorization: Bearer ${regions.us.keyPrefix}…' \\
  ${baseUrls.us}/v1/orgs/${exampleOrgId}
\`\`\`

The organization’s id is shown in the console, and every event carries it. Answers are JSON. Ids are UUIDs and
date-times are UTC with milliseconds, such as
\`2026-01-01T00:00:00.000Z\`, unless a field says otherwise. Lists come complete, without pagination, in
the order that is described with their fields; no read takes query parameters.`;
};

const keys = `\
# Keys

Owners, and members whose role may manage keys, create keys in the console with a second sign-in factor. A key is
shown once, when it is created.
An organization can have ${validKeysPerOrganization} at a time, each with the scopes it needs and, if you like, an
expiry, which answers repeat in \`Key-Expires\`.

A key acts for the person who created it and can never do more than that person can now. When they leave or lose a
permission, the reads concerned answer 403 at once. A key that was
lost or leaked is revoked in the console, also at once. Every use of a key is in the organization’s audit log, which its
people see in the console, under the \`Request-Id\` of the answer; calls above the limit are counted there by the
minute. A call that is answered 500 or 503 got no data and may have no line; a request that is not valid HTTP
is no use of its key.`;

const limits = `\
# Limits

Each key may make ${requestsPerWindow} requests in any ${requestWindowSeconds} seconds.
Every answer to a key says what is left:

\`\`\`http
RateLimit-Policy: "key";q=${requestsPerWindow};w=${requestWindowSeconds}
RateLimit: "key";r=118;t=41
\`\`\`

Here 118 requests are left, and one more becomes available in 41 seconds. Above the limit the answer is 429 with
\`Retry-After\`; rejected requests do not count, and a lone caller that waits that
long is admitted. An address that sends no key of this server more than ${failedAuthenticationsPerMinute} times a minute
gets 429 for more of the same; requests with a key of this server are not affected.`;

const caching = `\
# Caching

Every 200 has an \`ETag\`. Send it back in \`If-None-Match\`: if nothing has changed, the answer is 304 without a
body. Both count against the limit.

A body of 1,400 bytes or more comes in br or gzip if \`Accept-Encoding\` asks for it, with the same \`ETag\` as a weak
one (\`W/"…"\`). \`If-None-Match\` matches either form.`;

const errorRow = (code: ErrorCode): string => {
  const { meaning, remedy } = errorHelp[code];
  return `| ${errorStatus[code]} | \`${code}\` | ${meaning} | ${remedy} |`;
};

const errors = `\
# Errors

Every error response is JSON. Decide by \`error\`; \`message\` is for people and may change.

\`\`\`json
{
  "error": "insufficient_scope",
  "message": "This API key does not carry the scope org.clients.read, which this read needs."
}
\`\`\`

| Status | \`error\` | When | What to do |
| --- | --- | --- | --- |
${errorCodes.map(errorRow).join('\n')}`;

const events = `\
# Webhooks

Webhooks are registered in the console: an https address and the event types it wants. Each event is posted to it as
JSON. The service does not reach your own machine: a receiver there gets events from \`listen\`, a tool of this project,
or at an http address if the installation allows it.

**Answer with a 2xx status within 10 seconds**, before you do the work; anything else is a refusal, and the event is
sent again: by default after 5 s, 30 s, 5 min, 15 min, 30 min, then 1, 2, 4, 8, 12, 20 and 24 hours. The event’s id
stays the same, so a repeat can be ignored.
A 429 or 503 with \`Retry-After\` delays everything of the webhook for that time, an hour at most; one delivery goes
first then. A 410 suspends the webhook until a member resumes it.

A body has at most ${eventBytesAtMost / 1024} KiB, and the headers of a delivery 8 KiB.
Every delivery names its webhook in \`webhook-endpoint\`: a receiver of several webhooks chooses by it the secrets with
which it checks the signature.
An organization can add headers of its own to the deliveries of a webhook, such as the key of a gateway. They never
replace a header that is named here. It can also limit the requests per second of a webhook; what is above waits.

The events of one seat (\`seatId\` of \`seat.given\` and \`seat.ended\`) arrive in order, and so do those of one grant
(\`grantId\` of \`client.started\` and \`client.ended\`): the next one waits until the one before is accepted or has
failed at its last attempt. This can be turned off for a webhook. All others, and what you redeliver, can arrive in any
order: also the end of a grant before the beginning of its seat.

\`webhook.failing\`, \`webhook.suspended\` and \`key.expiring\` are about the organization’s webhooks and keys. A
webhook gets none about itself: list them at another receiver.

**Order by the event, for each subject.** The subject of \`seat.given\` and \`seat.ended\` is the seat, that of
\`client.started\` and \`client.ended\` the grant. Of one subject the event with the later \`createdAt\` is the later
one; within a millisecond the one with the higher \`webhook-sequence\`, or between two webhooks the greater \`id\`.
Store that position with the subject and apply no event that is earlier than it, or a \`client.started\` that arrives
late makes an ended client active again. Keep it per subject and not per grant: a grant has several seats, one after
another.

\`webhook-sequence\` is no order of events. It counts the events of one webhook in the order in which the service
first took them up to send them, so a number that never arrives is an event that you missed: redeliver it in the
console. Two webhooks count apart. Recognize repeats by the event id, not by this number.

A test event has \`"test": true\` beside \`type\`: nothing happened, so act on none of it.

On your request, and never otherwise, your receiver is checked: a correctly signed test event that it has to accept
with a 2xx status, and a badly signed one that it has to refuse with another.

**Check the signature** before you trust a body. Use any library for [Standard
Webhooks](https://www.standardwebhooks.com) with \`webhook-signature\`, one that verifies Stripe’s
signatures with \`Service-Signature\`, or these steps:

1. Take \`t\` and every \`v1\` from \`Service-Signature\`. Refuse a \`t\` more than five minutes from your clock.
2. Compute HMAC-SHA-256 of \`t\`, a full stop and the body’s bytes as received, before any parsing; the key is the
   whole secret, with \`whsec_\`.
3. Compare its hexadecimal form with each \`v1\` in constant time. One match is enough: while a secret is being
   rotated there are two.

\`\`\`js
import { createHmac, timingSafeEqual } from 'node:crypto';

function isGenuine(
  body, header, secret, nowSeconds = Date.now() / 1000,
) {
  const parts = header.split(',').map((p) => p.split('='));
  const t = parts.find(([name]) => name === 't')?.[1];
  const expected = createHmac('sha256', secret)
    .update(\`\${t}.\`)
    .update(body)
    .digest();
  const isFresh = Math.abs(nowSeconds - Number(t)) <= 300;
  return isFresh && parts.some(([name, hex]) => {
    const given = Buffer.from(hex ?? '', 'hex');
    return (
      name === 'v1' &&
      given.length === expected.length &&
      timingSafeEqual(given, expected)
    );
  });
}
\`\`\`

To try yours: the example of \`client.started\`, written without spaces, signed with the secret \`${exampleSecret}\`,
gives the signatures in the example of a delivery’s headers.`;

const promises = `\
# Compatibility

An answer or an event may gain fields; it never loses or changes one. Ignore fields that you do not know. New event
types go only to webhooks that subscribe to them.`;
