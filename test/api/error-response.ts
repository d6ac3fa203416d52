import { expect } from 'vitest';
import { type ErrorCode, errorStatus } from '#domain/contract/errors.ts';

/**
 * Asserts that a response is exactly this error response: status, JSON type, a body of exactly
 * `{error, message}`, and a message without a key. Returns the message.
 */
export async function expectErrorResponse(response: Response, code: ErrorCode, message: RegExp = /./): Promise<string> {
  const text = await response.text();
  expect({ status: response.status, body: text }).toMatchObject({ status: errorStatus[code] });
  expect(response.headers.get('content-type')).toMatch(/^application\/json/);
  const body = JSON.parse(text) as { error: string; message: string };
  expect(Object.keys(body)).toEqual(['error', 'message']);
  expect(body.error).toBe(code);
  expect(body.message).toMatch(message);
  expect(text).not.toMatch(/aln_(us|ca)_\w/);
  return body.message;
}
