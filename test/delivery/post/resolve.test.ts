import { isIPv4 } from 'node:net';
import { describe, expect, it } from 'vitest';
import { postUntilMs } from '#delivery/times.ts';
import { createResolve } from '#runtime/egress/resolve.ts';
import { addressBlocks } from '#runtime/settings/types.ts';
import { type DnsAnswer, type DnsRecord, startDnsServer } from '#test/dns-server.ts';
import { post, startDeadHosts, startRawServer } from './raw-server.ts';

const name = 'hooks.example.com';
const neverAborted = () => new AbortController().signal;
const a = (value: string): DnsRecord => ({ type: 'A', value });
const aaaa = (value: string): DnsRecord => ({ type: 'AAAA', value });
const rootAnswer: DnsAnswer = [{ type: 'NS', value: 'a.root-servers.net' }];

/**
 * A DNS server with these answers for the name; the root's name servers are known unless `root`
 * differs.
 */
async function resolver(
  answers: { A?: DnsAnswer; AAAA?: DnsAnswer; root?: DnsAnswer },
  onFinished?: (end: () => void) => void,
) {
  const { A = [], AAAA = [], root = rootAnswer } = answers;
  const dns = await startDnsServer(
    (requested, type) => (requested === '.' ? root : type === 'A' ? A : type === 'AAAA' ? AAAA : []),
    onFinished,
  );
  return { ...dns, resolve: createResolve({ servers: [dns.server] }) };
}

/** A receiver that accepts, and a DNS answer that leads to it. */
async function receiver() {
  const server = await startRawServer((socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'));
  return { server, url: `http://${name}:${server.port}/` };
}

describe('looking up a name', () => {
  it('returns A and AAAA records in turn, IPv4 first', async () => {
    const { resolve } = await resolver({ A: [a('8.8.8.8'), a('8.8.4.4')], AAAA: [aaaa('2606:4700::1111')] });
    const { addresses } = (await resolve(name, neverAborted())) as { addresses: string[] };
    expect([...addresses].sort()).toEqual(['2606:4700::1111', '8.8.4.4', '8.8.8.8']);
    expect(addresses[1]).toBe('2606:4700::1111');
  });

  it('returns the first eight addresses of a name that has more', async () => {
    const many = Array.from({ length: 60 }, (_, index) => a(`8.8.4.${index}`));
    const { resolve } = await resolver({ A: many, AAAA: [aaaa('2606:4700::1111')] });
    const { addresses } = (await resolve(name, neverAborted())) as { addresses: string[] };
    expect(addresses).toHaveLength(8);
    const [ipv6, ...ipv4] = [...addresses].sort((one, other) => Number(isIPv4(one)) - Number(isIPv4(other)));
    expect(ipv6).toBe('2606:4700::1111');
    expect(many.map(({ value }) => value)).toEqual(expect.arrayContaining(ipv4));
  });

  // At once: most of them wait for time limits.
  it.concurrent.for<[string, { A?: DnsAnswer; AAAA?: DnsAnswer; root?: DnsAnswer }, unknown]>([
    ['AAAA alone', { AAAA: [aaaa('2606:4700::1')] }, { ok: true, addresses: ['2606:4700::1'] }],
    ['A when AAAA fails', { A: [a('8.8.8.8')], AAAA: 'SERVFAIL' }, { ok: true, addresses: ['8.8.8.8'] }],
    ['A when AAAA is never answered', { A: [a('8.8.8.8')], AAAA: null }, { ok: true, addresses: ['8.8.8.8'] }],
    ['a name that does not exist', { A: 'NXDOMAIN', AAAA: 'NXDOMAIN' }, { ok: false, cause: 'dns_no_such_name' }],
    ['a name without addresses', {}, { ok: false, cause: 'dns_no_address' }],
    ['SERVFAIL', { A: 'SERVFAIL', AAAA: 'SERVFAIL' }, { ok: false, cause: 'dns_failed' }],
    ['SERVFAIL beside no data', { A: 'SERVFAIL' }, { ok: false, cause: 'dns_failed' }],
    ['a silent zone', { A: null, AAAA: null }, { ok: false, cause: 'dns_timeout' }],
    [
      'a resolver that fails at everything',
      { A: 'SERVFAIL', AAAA: 'SERVFAIL', root: 'SERVFAIL' },
      { ok: false, cause: 'dns_unavailable' },
    ],
    ['a silent resolver', { A: null, AAAA: null, root: null }, { ok: false, cause: 'dns_unavailable' }],
  ])('distinguishes %s', async ([_case, answers, expected], { expect, onTestFinished }) => {
    const { resolve } = await resolver(answers, onTestFinished);
    expect(await resolve(name, neverAborted())).toEqual(expected);
  });

  it('waits for AAAA no longer than a moment once A has answered, and as long as it takes for A', async () => {
    const { resolve, questions } = await resolver({ A: [a('8.8.8.8')], AAAA: null });
    expect(await resolve(name, neverAborted())).toEqual({ ok: true, addresses: ['8.8.8.8'] });
    expect([...questions].sort()).toEqual([`${name} A`, `${name} AAAA`]); // before AAAA is asked again
    const late = await startDnsServer((_name, type) => {
      if (type === 'AAAA') return [aaaa('2606:4700::1')];
      return late.questions.filter((requested) => requested.endsWith(' A')).length > 1 ? [a('8.8.8.8')] : null;
    });
    const both = await createResolve({ servers: [late.server] })(name, neverAborted());
    expect(both).toEqual({ ok: true, addresses: ['8.8.8.8', '2606:4700::1'] });
  });

  it('reports that the resolver is unavailable when nothing listens there', async () => {
    const resolve = createResolve({ servers: ['127.0.0.1:1'] });
    expect(await resolve(name, neverAborted())).toEqual({ ok: false, cause: 'dns_unavailable' });
  });

  it('asks the first three servers, of which two may be dead, and none twice meanwhile', async () => {
    const dead = [await startDnsServer(() => null), await startDnsServer(() => null)];
    const good = await startDnsServer((_name, type) => (type === 'A' ? [a('8.8.8.8')] : []));
    const resolve = createResolve({ servers: [...dead, good].map(({ server }) => server) });
    expect(await resolve(name, neverAborted())).toEqual({ ok: true, addresses: ['8.8.8.8'] });
    for (const { questions } of [...dead, good]) expect([...questions].sort()).toEqual([`${name} A`, `${name} AAAA`]);
  });

  it('asks another server when one fails, and believes what one says for certain', async () => {
    const broken = await startDnsServer(() => 'SERVFAIL');
    const good = await startDnsServer((_name, type) => (type === 'A' ? [a('8.8.8.8')] : []));
    const unaware = await startDnsServer(() => 'NXDOMAIN');
    const resolve = (...servers: { server: string }[]) =>
      createResolve({ servers: servers.map(({ server }) => server) })(name, neverAborted());
    expect(await resolve(broken, good)).toEqual({ ok: true, addresses: ['8.8.8.8'] });
    expect(await resolve(unaware, good)).toEqual({ ok: false, cause: 'dns_no_such_name' });
    expect(good.questions).toHaveLength(2);
  });

  it('believes a later server that there is no address once the earlier ones have failed', async () => {
    const unaware = await startDnsServer(() => 'NXDOMAIN');
    const silent = await startDnsServer(() => null);
    const slow = await startDnsServer((_name, type) => {
      if (type === 'AAAA') return [];
      return slow.questions.filter((requested) => requested.endsWith(' A')).length > 1 ? [a('8.8.8.8')] : null;
    });
    const resolve = (...servers: { server: string }[]) =>
      createResolve({ servers: servers.map(({ server }) => server) })(name, neverAborted());
    expect(await resolve(slow, unaware)).toEqual({ ok: true, addresses: ['8.8.8.8'] });
    expect(await resolve(silent, unaware)).toEqual({ ok: false, cause: 'dns_no_such_name' });
  });

  it('blames the zone when one server works and no server answers for it', async () => {
    const silent = await startDnsServer(() => null);
    const working = await startDnsServer((requested) => (requested === '.' ? rootAnswer : null));
    const resolve = createResolve({ servers: [silent.server, working.server] });
    expect(await resolve(name, neverAborted())).toEqual({ ok: false, cause: 'dns_timeout' });
  });

  it('reports it also when several do not answer', async () => {
    const silent = await Promise.all(Array.from({ length: 3 }, () => startDnsServer(() => null)));
    const resolve = createResolve({ servers: silent.map(({ server }) => server) });
    const signal = AbortSignal.timeout(postUntilMs);
    expect(await resolve(name, signal)).toEqual({ ok: false, cause: 'dns_unavailable' });
    expect(signal.aborted).toBe(false);
  });

  it('stops when its time is up, and blames no zone for what is not known by then', async () => {
    const { resolve } = await resolver({ A: null, AAAA: null });
    expect(await resolve(name, AbortSignal.timeout(50))).toEqual({ ok: false, cause: 'dns_unavailable' });
  });

  it('blames no zone when the servers reject its questions and those for the root', async () => {
    const rejecting = await startDnsServer(() => 'REFUSED');
    const failing = await startDnsServer(() => 'SERVFAIL');
    const silent = await startDnsServer(() => null);
    const rejectingOne = await startDnsServer((requested) => (requested === '.' ? rootAnswer : 'REFUSED'));
    const resolve = (...servers: { server: string }[]) =>
      createResolve({ servers: servers.map(({ server }) => server) })(name, neverAborted());
    const unavailable = { ok: false, cause: 'dns_unavailable' };
    expect(await resolve(rejecting)).toEqual(unavailable);
    expect(
      await Promise.all([resolve(rejecting, rejecting), resolve(failing, rejecting), resolve(silent, rejecting)]),
    ).toEqual(Array(3).fill(unavailable));
    expect(await resolve(rejecting, rejectingOne)).toEqual({ ok: false, cause: 'dns_failed' });
  });

  it('uses the name as it is, without search domains, and queries again each time', async () => {
    const { resolve, questions } = await resolver({ A: 'NXDOMAIN', AAAA: 'NXDOMAIN' });
    await resolve('hooks', neverAborted());
    await resolve('hooks', neverAborted());
    expect([...questions].sort()).toEqual(['hooks A', 'hooks A', 'hooks AAAA', 'hooks AAAA']);
  });
});

describe('a post to a name', () => {
  it.each<[string, { A?: DnsAnswer; AAAA?: DnsAnswer }]>([
    ['a private address', { A: [a('10.0.0.1')] }],
    ['the metadata address', { A: [a('169.254.169.254')] }],
    ['a private address after an allowed one', { A: [a('127.0.0.1'), a('10.0.0.1')] }],
    ['a private address before an allowed one', { A: [a('192.168.0.1'), a('127.0.0.1')] }],
    ['a private IPv6 address beside an allowed IPv4', { A: [a('127.0.0.1')], AAAA: [aaaa('fd00::1')] }],
    ['loopback in IPv6 beside an allowed IPv4', { A: [a('127.0.0.1')], AAAA: [aaaa('::1')] }],
    ['a mapped private address', { A: [a('127.0.0.1')], AAAA: [aaaa('::ffff:a00:1')] }],
    ['a NAT64 private address', { AAAA: [aaaa('64:ff9b::a00:1')] }],
    ['a chain of aliases to a private address', { A: chain('10.0.0.1') }],
    ['0.0.0.0', { A: [a('0.0.0.0')] }],
  ])('is rejected when DNS answers with %s', async (_case, answers) => {
    const { server, url } = await receiver();
    const { resolve } = await resolver(answers);
    const result = await post(url, { resolve });
    expect(result).toMatchObject({
      outcome: 'failed',
      cause: 'name_not_public',
      status: null,
      peerAddress: null,
    });
    expect(result.timingsMs).toMatchObject({ connect: null, tls: null, firstByte: null });
    expect(server.connections).toBe(0);
  });

  it('follows a chain of aliases to an allowed address, and names the host of the URL to the receiver', async () => {
    const { server, url } = await receiver();
    const { resolve } = await resolver({ A: chain('127.0.0.1') });
    const result = await post(url, { resolve });
    expect(result).toMatchObject({ outcome: 'delivered', peerAddress: '127.0.0.1' });
    expect(result.timingsMs.dns).toEqual(expect.any(Number));
    expect(server.requests[0]).toContain(`host: ${name}:${server.port}\r\n`);
  });

  it('connects to the checked address, whatever DNS answers afterwards', async () => {
    const { server, url } = await receiver();
    let requested = 0;
    const dns = await startDnsServer((_name, type) => {
      if (type !== 'A') return [];
      requested += 1;
      return [a(requested === 1 ? '127.0.0.1' : '10.0.0.1')];
    });
    const resolve = createResolve({ servers: [dns.server] });
    expect(await post(url, { resolve })).toMatchObject({ outcome: 'delivered', peerAddress: '127.0.0.1' });
    expect([...dns.questions].sort()).toEqual([`${name} A`, `${name} AAAA`]); // no query follows the decision

    expect(await post(url, { resolve })).toMatchObject({ outcome: 'failed', cause: 'name_not_public' });
    expect(server.connections).toBe(1);
  });

  it('sends plain http to no name with a public address', async () => {
    const { url } = await receiver();
    const { resolve } = await resolver({ A: [a('8.8.8.8')] });
    expect(await post(url, { resolve })).toMatchObject({ outcome: 'failed', cause: 'url_scheme', peerAddress: null });
    const both = await resolver({ A: [a('127.0.0.1'), a('8.8.8.8')] });
    expect(await post(url, { resolve: both.resolve })).toMatchObject({ outcome: 'failed', cause: 'url_scheme' });
  });

  it('reaches the last of six addresses when the others are dead', async () => {
    const { server, url } = await receiver();
    const dead = Array.from({ length: 5 }, (_, index) => `127.0.0.${index + 2}`);
    await startDeadHosts(dead, server.port);
    const resolve = async () => ({ ok: true as const, addresses: [...dead, '127.0.0.1'] });
    const result = await post(url, { resolve });
    expect(result).toMatchObject({ outcome: 'delivered', peerAddress: '127.0.0.1' });
  });

  it('fails in time when all addresses are dead', async () => {
    const { server, url } = await receiver();
    await startDeadHosts(['127.0.0.2', '127.0.0.3'], server.port);
    const resolve = async () => ({ ok: true as const, addresses: ['127.0.0.2', '127.0.0.3'] });
    const result = await post(url, { resolve, deadlineMs: 1_000 });
    expect(result).toMatchObject({ outcome: 'failed', cause: 'connection_timeout' });
  });

  it('tries the other addresses when one rejects', async () => {
    const { url } = await receiver();
    // 127.0.0.2 rejects at once: the receiver listens on 127.0.0.1 only.
    const { resolve } = await resolver({ A: [a('127.0.0.2'), a('127.0.0.1')] });
    expect(await post(url, { resolve })).toMatchObject({ outcome: 'delivered', peerAddress: '127.0.0.1' });
  });

  it('reaches no name while the resolver is down, which counts as an internal error', async () => {
    const result = await post(`https://${name}/`, { resolve: createResolve({ servers: ['127.0.0.1:1'] }) });
    expect(result).toMatchObject({
      outcome: 'internal_error',
      cause: 'dns_unavailable',
      peerAddress: null,
    });
  });

  it('ends in time when a resolver never answers, which counts as an internal error', async () => {
    const result = await post(`https://${name}/`, { resolve: () => new Promise(() => {}), lookUpMs: 50 });
    expect(result).toMatchObject({ outcome: 'internal_error', cause: 'dns_unavailable' });
  });

  it('never looks up localhost', async () => {
    const { server } = await receiver();
    expect(await post(`http://localhost:${server.port}/`)).toMatchObject({
      outcome: 'delivered',
      peerAddress: '127.0.0.1',
    });
    expect(await post('https://localhost/', { allow: addressBlocks.parse('') })).toMatchObject({
      cause: 'url_host_local',
    });
  });
});

function chain(address: string): DnsRecord[] {
  return [
    { type: 'CNAME', value: 'one.example.net' },
    { type: 'CNAME', name: 'one.example.net', value: 'two.example.org' },
    { type: 'A', name: 'two.example.org', value: address },
  ];
}
