import { lookup } from 'node:dns/promises';
import { type BlockList, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { createFindings, type Finding } from './finding.ts';

const dns = createFindings('dns');
const proxies = createFindings('trusted-proxies');

/** Checks that the names of servers resolve. */
export async function checkNames(hosts: readonly { setting: string; host: string }[]): Promise<Finding[]> {
  const names = hosts.filter(({ host }) => isIP(host) === 0 && !host.startsWith('/'));
  return Promise.all(
    names.map(async ({ setting, host }) => {
      const code = await lookup(host).then(
        () => null,
        (error: NodeJS.ErrnoException) => error.code ?? 'no response',
      );
      return dns.expectThat(
        code === null,
        `the host of ${setting} resolves`,
        `the host of ${setting} does not resolve (${code})`,
        'Correct the name, or see that DNS answers here and that a network policy lets its port through.',
      );
    }),
  );
}

/** Addresses of documentation, which no proxy has. */
const documented = ['192.0.2.1', '198.51.100.1', '2001:db8::1'];

/** Checks that TRUSTED_PROXIES names proxies, and not all addresses. */
export function checkTrustedProxies(trusted: BlockList): Finding {
  const covers = (address: string) => trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
  if (documented.some(covers))
    return proxies.failed(
      'TRUSTED_PROXIES trusts every address: a client chooses the address that limits and the log use',
      'Name the addresses of your gateway only.',
    );
  const own = Object.values(networkInterfaces()).flatMap((all = []) => all.filter(({ internal }) => !internal));
  if (own.some(({ address }) => covers(address)))
    return proxies.warning(
      'TRUSTED_PROXIES covers this machine, which is no proxy',
      'Name the addresses of your gateway only, or let a network policy admit only those.',
    );
  return proxies.ok(
    trusted.rules.length === 0 ? 'no proxy is trusted' : 'TRUSTED_PROXIES covers no address that is no proxy',
  );
}
