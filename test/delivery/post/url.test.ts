import { describe, expect, it } from 'vitest';
import { checkUrl } from '#domain/webhooks/address/url.ts';
import { addressBlocks } from '#runtime/settings/types.ts';
import { acceptableUrls, hostileUrls } from './hostile-urls.ts';

const none = addressBlocks.parse('');
const loopback = addressBlocks.parse('127.0.0.0/8');
const hostile = Object.entries(hostileUrls).flatMap(([cause, urls]) => urls.map((url) => ({ cause, url })));

describe('a webhook’s URL', () => {
  it.each(hostile)('$url is rejected as $cause', ({ url, cause }) => {
    expect(checkUrl(url, none)).toEqual({ ok: false, cause });
  });

  it.each(acceptableUrls)('$url is accepted', ({ url, sent = url }) => {
    const judged = checkUrl(url, none);
    expect(judged).toMatchObject({ ok: true });
    expect(judged.ok && judged.url.href).toBe(sent);
  });

  it('is tested with at least 150 hostile cases, each once', () => {
    expect(new Set(hostile.map(({ url }) => url)).size).toBe(hostile.length);
    expect(hostile.length).toBeGreaterThanOrEqual(150);
  });

  it('has a host, port and address once it is accepted', () => {
    expect(checkUrl('https://hooks.example.com/', none)).toMatchObject({
      hostname: 'hooks.example.com',
      port: 443,
      address: null,
    });
    expect(checkUrl('https://[2606:4700::1]:8443/', none)).toMatchObject({
      hostname: '2606:4700::1',
      port: 8443,
      address: '2606:4700::1',
    });
    expect(checkUrl('http://localhost/', loopback)).toMatchObject({
      hostname: 'localhost',
      port: 80,
      address: '127.0.0.1',
    });
  });
});

describe('with allowed addresses', () => {
  it.each([
    'http://127.0.0.1:3000/',
    'https://127.0.0.1/',
    'http://localhost:3000/hook',
    'https://hooks.localhost/',
    'http://[::ffff:127.0.0.1]/',
    'http://receiver.default.svc.cluster.local/',
    'http://hooks.example.com/',
  ])('accepts %s by its text', (url) => {
    expect(checkUrl(url, loopback)).toMatchObject({ ok: true });
  });

  it.each([
    ['http://8.8.8.8/', 'url_scheme'],
    ['http://10.0.0.1/', 'address_not_public'],
    ['https://169.254.169.254/', 'address_not_public'],
    ['http://[::1]/', 'address_not_public'],
    ['http://2130706433/', 'url_host_form'],
    ['http://user@127.0.0.1/', 'url_credentials'],
    ['ftp://127.0.0.1/', 'url_scheme'],
    ['http://localhost./', 'url_host_form'],
  ])('still rejects %s as %s', (url, cause) => {
    expect(checkUrl(url, loopback)).toEqual({ ok: false, cause });
  });

  it('rejects localhost where only other addresses are allowed', () => {
    expect(checkUrl('https://localhost/', addressBlocks.parse('10.0.0.0/8'))).toEqual({
      ok: false,
      cause: 'url_host_local',
    });
  });
});
