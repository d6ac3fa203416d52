/** What two posts prove about a receiver. */
import { expect, it } from 'vitest';
import { getSignatureResult } from '#domain/webhooks/signature-result.ts';

const answered = (status: number | null) => ({ delivered: status !== null && status >= 200 && status < 300, status });

it('a receiver verifies when it rejects exactly the badly signed event', () => {
  const getResult = (bad: number | null) => getSignatureResult(answered(204), answered(bad));
  for (const status of [400, 401, 403, 422]) expect([status, getResult(status)]).toEqual([status, 'verified']);
  for (const status of [302, 408, 425, 429, 500, 502, 503, null])
    expect([status, getResult(status)]).toEqual([status, 'no_response']);
  for (const status of [200, 204]) expect([status, getResult(status)]).toEqual([status, 'accepts_bad_signatures']);
});

it('a receiver that is busy, broken or moved is not reported as one that rejects correct signatures', () => {
  for (const status of [400, 401, 404])
    expect([status, getSignatureResult(answered(status), null)]).toEqual([status, 'rejects_good_signatures']);
  for (const status of [302, 429, 500, 503, null])
    expect([status, getSignatureResult(answered(status), null)]).toEqual([status, 'no_response']);
});
