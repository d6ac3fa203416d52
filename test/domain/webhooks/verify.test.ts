import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { generateSecret } from '#domain/webhooks/secret.ts';
import { signatureHeaders } from '#domain/webhooks/sign.ts';
import { type CapturedDelivery, type CheckName, verifyDelivery } from '#domain/webhooks/verification/verify.ts';
import { otherSecret, vector } from './vector.ts';

const { secret, id, timestampSeconds } = vector;
const body = Buffer.from(vector.body);
const now = new Date((timestampSeconds + 2) * 1000);
const headers = signatureHeaders({ id, timestampSeconds, body, secrets: [secret] });

/** The vector's delivery as captured, with a test's changes. */
const captured = (changed: Partial<CapturedDelivery> = {}): CapturedDelivery => ({
  headers,
  body,
  secrets: [secret],
  now,
  ...changed,
});

/** Returns the failing checks with their explanations. */
const failures = (delivery: CapturedDelivery): Partial<Record<CheckName, string>> => {
  const { ok, checks } = verifyDelivery(delivery);
  expect(ok).toBe(checks.every((check) => check.ok));
  return Object.fromEntries(checks.filter((check) => !check.ok).map(({ name, explanation }) => [name, explanation]));
};

const without = (name: string) => Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name));

describe('a captured delivery', () => {
  it('verifies as it was sent, and every check was made', () => {
    const { ok, checks } = verifyDelivery(captured());
    expect(ok).toBe(true);
    expect(checks.map((check) => check.name)).toEqual([
      'secret_form',
      'service_signature_header',
      'standard_headers',
      'timestamps_agree',
      'timestamp_within_tolerance',
      'id_matches_body',
      'service_signature',
      'standard_signature',
    ]);
  });

  it('verifies with header names in any case, and beside signatures of other schemes', () => {
    const shouted = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]));
    const future = {
      ...headers,
      'Service-Signature': `${headers['Service-Signature']},v2=abc`,
      'webhook-signature': `v1a,abc ${headers['webhook-signature']}`,
    };
    expect(failures(captured({ headers: shouted }))).toEqual({});
    expect(failures(captured({ headers: future }))).toEqual({});
  });

  it('verifies before, during and after a rotation for a receiver with either secret', () => {
    const [older, newer] = [generateSecret(), generateSecret()];
    const isAccepted = (signing: string[], held: string[]) =>
      verifyDelivery(
        captured({ headers: signatureHeaders({ id, timestampSeconds, body, secrets: signing }), secrets: held }),
      ).ok;
    expect([isAccepted([older], [older]), isAccepted([older], [newer])]).toEqual([true, false]);
    expect([isAccepted([newer, older], [older]), isAccepted([newer, older], [newer])]).toEqual([true, true]);
    expect([isAccepted([newer], [older]), isAccepted([newer], [newer])]).toEqual([false, true]);
    expect(isAccepted([older], [newer, older])).toBe(true);
  });

  it('fails when any byte of body, id, timestamp or secret differs', () => {
    const changeAt = (bytes: Buffer, at: number, to: number) => {
      const changed = Buffer.from(bytes);
      changed.writeUInt8(to, at % bytes.length);
      return changed;
    };
    fc.assert(
      fc.property(
        fc.nat(10_000),
        fc.integer({ min: 48, max: 57 }),
        fc.integer({ min: 1, max: 299 }),
        (at, to, shift) => {
          const changedBody = changeAt(body, at, to);
          fc.pre(!changedBody.equals(body));
          expect(verifyDelivery(captured({ body: changedBody })).ok).toBe(false);

          const changedId = changeAt(Buffer.from(id), at, to).toString();
          if (changedId !== id)
            expect(verifyDelivery(captured({ headers: { ...headers, 'webhook-id': changedId } })).ok).toBe(false);

          const shifted = String(timestampSeconds - shift);
          const shiftedHeaders = {
            ...headers,
            'webhook-timestamp': shifted,
            'Service-Signature': headers['Service-Signature']?.replace(/^t=\d+/, `t=${shifted}`),
          };
          expect(verifyDelivery(captured({ headers: shiftedHeaders })).ok).toBe(false);

          const changedSecret = `whsec_${changeAt(Buffer.from(secret.slice(6)), at, to)}`;
          if (changedSecret !== secret) expect(verifyDelivery(captured({ secrets: [changedSecret] })).ok).toBe(false);
        },
      ),
    );
  });

  it('is judged without an exception, whatever was captured', () => {
    const text = fc.uint8Array().map((bytes) => Buffer.from(bytes).toString('latin1'));
    const value = fc.option(fc.oneof(text, fc.array(text)), { nil: undefined });
    const names = ['service-signature', 'webhook-id', 'webhook-timestamp', 'webhook-signature', 'content-length'];
    const anyOf = fc.record(Object.fromEntries(names.map((name) => [name, value])));
    fc.assert(
      fc.property(anyOf, fc.uint8Array(), fc.array(text), (anyHeaders, bytes, secrets) => {
        expect(verifyDelivery({ headers: anyHeaders, body: Buffer.from(bytes), secrets }).ok).toBe(false);
      }),
    );
  });

  it('never has a secret in an explanation', () => {
    for (const secrets of [[secret], [otherSecret], [` ${secret}`], [secret.slice(0, 30)], [secret.slice(6)]]) {
      expect(JSON.stringify(verifyDelivery(captured({ secrets })))).not.toContain(secrets[0]?.trim().slice(6, 16));
    }
  });
});

describe('the reported failure is', () => {
  it.each(['Service-Signature', 'webhook-id', 'webhook-timestamp', 'webhook-signature'])('a missing %s', (name) => {
    const check = name === 'Service-Signature' ? 'service_signature_header' : 'standard_headers';
    const failed = failures(captured({ headers: without(name) }));
    expect(Object.keys(failed)).toEqual([check]);
    expect(failed[check]).toContain(`the header ${name} is missing`);
  });

  it.each([
    ['a signature without its time', { 'Service-Signature': vector.service }, 'service_signature_header'],
    ['a signature without its scheme', { 'Service-Signature': 't=1767225600' }, 'service_signature_header'],
    [
      'a signature cut short',
      { 'Service-Signature': `t=1767225600,${vector.service.slice(0, 40)}` },
      'service_signature_header',
    ],
    ['a time in words', { 'webhook-timestamp': '2026-01-01' }, 'standard_headers'],
    ['a base64 signature cut short', { 'webhook-signature': vector.standard.slice(0, 20) }, 'standard_headers'],
    ['a header that came twice', { 'webhook-id': [id, id] }, 'standard_headers'],
  ] as const)('%s', (_, changed, check) => {
    expect(Object.keys(failures(captured({ headers: { ...headers, ...changed } })))).toEqual([check]);
  });

  it('a timestamp outside the tolerance, by one second, in both directions', () => {
    const at = (seconds: number) => failures(captured({ now: new Date((timestampSeconds + seconds) * 1000) }));
    expect([at(300), at(-300)]).toEqual([{}, {}]);
    expect(at(301)).toEqual({
      timestamp_within_tolerance: expect.stringContaining('301 s behind this clock, and 300 s'),
    });
    expect(at(-301)).toEqual({ timestamp_within_tolerance: expect.stringContaining('301 s ahead of this clock') });
    expect(failures(captured({ now: new Date(), toleranceSeconds: Number.POSITIVE_INFINITY }))).toEqual({});
  });

  it('different timestamps in the two forms', () => {
    const later = signatureHeaders({ id, timestampSeconds: timestampSeconds + 1, body, secrets: [secret] });
    const mixed = { ...headers, 'Service-Signature': later['Service-Signature'] };
    expect(Object.keys(failures(captured({ headers: mixed })))).toEqual(['timestamps_agree']);
  });

  it("an id that differs from the body's, even when it is well signed", () => {
    const other = signatureHeaders({ id: 'another', timestampSeconds, body, secrets: [secret] });
    expect(failures(captured({ headers: other }))).toEqual({
      id_matches_body: expect.stringContaining("webhook-id is not the body's id"),
    });
    expect(failures(captured({ headers: { ...headers, 'webhook-id': 'another' } }))).toMatchObject({
      standard_signature: expect.stringContaining('The other form verifies'),
    });
  });

  it('another secret', () => {
    const failed = failures(captured({ secrets: [otherSecret] }));
    expect(Object.keys(failed)).toEqual(['service_signature', 'standard_signature']);
    expect(failed.service_signature).toContain('belongs to another webhook or was rotated out');
  });

  const event = JSON.parse(vector.body);
  const { id: _id, ...rest } = event;
  it.each([
    ['with white space', JSON.stringify(event, null, 2), 'parsed and serialized differently'],
    ['with escapes', vector.body.replace('attorney', '\\u0061ttorney'), 'parsed and serialized differently'],
    ['in another order', JSON.stringify({ ...rest, id }), 'serialized in another order'],
    ['with a line end', `${vector.body}\r\n`, 'a line break was added'],
    ['with a byte order mark', `\uFEFF${vector.body}`, 'a byte order mark'],
    ['as a string', JSON.stringify(vector.body), 'encoded as a JSON string'],
  ])('a body that was serialized again %s', (_, text, explanation) => {
    const failed = failures(captured({ body: Buffer.from(text) }));
    expect(failed.service_signature).toContain(explanation);
    expect(failed.standard_signature).toContain(explanation);
  });

  it('a body of another length than announced', () => {
    const announced = { ...headers, 'content-length': String(body.length) };
    const failed = failures(captured({ headers: announced, body: body.subarray(0, -1) }));
    expect(failed.service_signature).toContain('so it was changed or cut');
  });

  it.each([
    ['nothing', [], 'No secret was given'],
    ['white space', [`${secret}\n`], 'Secret 1 of 1 has white space around it'],
    ['quotes', [secret, `"${secret}"`], 'Secret 2 of 2 has quotes around it'],
    ['a byte order mark', [`\ufeff${secret}`], 'Secret 1 of 1 has a byte order mark'],
    ['the part behind the prefix', [secret.slice(6)], 'does not begin with whsec_'],
    ['a secret cut short', [secret.slice(0, -2)], 'has 30 characters after whsec_ instead of 32'],
    ['URL-safe base64', [secret.replace('9', '-')], 'not base64'],
  ])('%s instead of a secret', (_, secrets, explanation) => {
    const failed = failures(captured({ secrets }));
    expect(Object.keys(failed)).toEqual(['secret_form']);
    expect(failed.secret_form).toContain(explanation);
  });
});
