import { expect } from 'vitest';

/**
 * Asserts that raw bytes are one whole response of an app to a request with a fault: its status,
 * its form, the headers of every response, an end of the connection, an id, and the id's line in
 * the log.
 */
export function expectFault(
  { response, lines }: { response: string; lines: readonly string[] },
  { status, form, code = 'invalid_request' }: { status: number; form: 'json' | 'page'; code?: string },
): void {
  const [head = '', body = '', ...more] = response.split('\r\n\r\n');
  expect([head.split('\r\n')[0], more]).toEqual([expect.stringMatching(`^HTTP/1.1 ${status} `), []]);
  const headers = new Map(
    head.split('\r\n').map((line) => [line.split(': ')[0]?.toLowerCase(), line.slice(line.indexOf(': ') + 2)]),
  );
  const requestId = headers.get('request-id');
  expect(requestId).toMatch(/^[0-9a-f-]{36}$/);
  expect(headers.get('x-content-type-options')).toBe('nosniff');
  expect(headers.get('connection')).toBe('close');
  expect(Number(headers.get('content-length'))).toBe(Buffer.byteLength(body));
  if (form === 'json') {
    expect(headers.get('strict-transport-security')).toBe('max-age=63072000; includeSubDomains');
    expect(headers.get('content-type')).toBe('application/json');
    expect(JSON.parse(body)).toEqual({ error: code, message: expect.stringMatching(/\.$/) });
  } else {
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(body).toMatch(/^<!doctype html>[\s\S]*<h1>Request not accepted<\/h1>[\s\S]*<\/html>\s*$/);
  }
  const found = lines.map((line) => JSON.parse(line)).filter((line) => line.requestId === requestId);
  expect(found).toEqual([expect.objectContaining({ msg: 'request', status, code })]);
}
