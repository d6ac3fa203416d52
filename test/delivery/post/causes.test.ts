import { describe, expect, it } from 'vitest';
import { causes, getCauseProperties } from '#domain/webhooks/causes.ts';
import { chooseCause, findErrorCause } from '#runtime/egress/fault.ts';

const coded = (code: string, address = '203.0.113.1') =>
  Object.assign(new Error('a message decides nothing'), { code, address });

describe('the table of causes', () => {
  it('has a stable code and a sentence with a remedy for each', () => {
    expect(new Set(causes).size).toBe(causes.length);
    for (const cause of causes) {
      expect(cause).toMatch(/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/);
      const explanation = getCauseProperties(cause).explanation;
      expect(explanation, cause).toMatch(/^[A-Z].{30,}\.$/);
      // What happened, and what to do.
      if (cause !== 'accepted') expect(explanation, cause).toMatch(/: |\. [A-Z]|^Enter /);
    }
  });

  it('has one cause of delivery, and only internal causes count as internal errors', () => {
    expect(causes.filter((cause) => getCauseProperties(cause).outcome === 'delivered')).toEqual(['accepted']);
    expect(causes.filter((cause) => getCauseProperties(cause).outcome === 'internal_error')).toEqual([
      'internal_error',
      'dns_unavailable',
      'network_unreachable',
      'sockets_exhausted',
      'egress_blocked',
      'clock_wrong',
    ]);
  });
});

describe('the cause of a connection’s error', () => {
  it.each([
    ['ENETUNREACH', 'network_unreachable'],
    ['ENETDOWN', 'network_unreachable'],
    ['EMFILE', 'sockets_exhausted'],
    ['ENFILE', 'sockets_exhausted'],
    ['ENOBUFS', 'sockets_exhausted'],
    ['EADDRNOTAVAIL', 'sockets_exhausted'],
    ['EACCES', 'egress_blocked'],
    ['EPERM', 'egress_blocked'],
  ] as const)('%s is internal: %s', (code, cause) => {
    expect(findErrorCause(coded(code), 'connect')).toBe(cause);
    expect(getCauseProperties(cause).outcome).toBe('internal_error');
  });

  it.each([
    ['ECONNREFUSED', 'connection_refused'],
    ['ETIMEDOUT', 'connection_timeout'],
    ['EHOSTUNREACH', 'host_unreachable'],
    ['ECONNRESET', 'connection_failed'],
    ['EWHATEVER', 'connection_failed'],
  ] as const)('%s is the receiver’s: %s', (code, cause) => {
    expect(findErrorCause(coded(code), 'connect')).toBe(cause);
    expect(getCauseProperties(cause).outcome).toBe('failed');
  });

  it('is the receiver’s lack of IPv4 when only IPv6 was tried and this machine has no route', () => {
    expect(findErrorCause(coded('ENETUNREACH', '2606:4700::1'), 'connect')).toBe('ipv6_only');
  });

  it.each([
    [['ENETUNREACH', '2606:4700::1', 'ECONNREFUSED', '203.0.113.1'], 'connection_refused'],
    [['ENETUNREACH', '2606:4700::1', 'ENETUNREACH', '203.0.113.1'], 'network_unreachable'],
    [['ETIMEDOUT', '203.0.113.2', 'EMFILE', '203.0.113.1'], 'connection_timeout'],
    [['ENETUNREACH', '2606:4700::1', 'ENETUNREACH', '2606:4700::2'], 'ipv6_only'],
  ] as const)('of several addresses %j is %s', ([code1, address1, code2, address2], cause) => {
    const causes = [coded(code1, address1), coded(code2, address2)].map((error) => findErrorCause(error, 'connect'));
    expect(chooseCause(causes)).toBe(cause);
  });
});
