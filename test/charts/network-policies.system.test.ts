import { BlockList } from 'node:net';
import { describe, expect, it } from 'vitest';
import { checkAddress } from '#domain/webhooks/address/addresses.ts';
import { connections } from '#test/connections.ts';
import { listPods, type Manifest, ofKind, operatorPeers, pick, regions, render } from '#test/render-charts.ts';
import { renderOperator } from './promtool.ts';

const policy = (component: string, values: object = {}) =>
  pick(render({ values }), 'NetworkPolicy', `-${component}`).spec;
/** The worker's rule for receivers: the only one with a range of ports. */
const towardsReceivers = (values: object = {}) =>
  policy('worker', values).egress.find((rule: Manifest) => rule.ports[0].endPort !== undefined);
const listPorts = (rules: Manifest[]) => rules.map((rule) => (rule.ports ?? []).map((one: Manifest) => one.port));

describe.each(regions)('NetworkPolicies of %s', (region) => {
  const manifests = render({ region });

  it('cover every pod, in both directions', () => {
    const policies = ofKind(manifests, 'NetworkPolicy').map((one) => one.spec);
    for (const { name, labels } of listPods(manifests)) {
      const own = policies.filter((one) =>
        Object.entries(one.podSelector.matchLabels).every(([key, value]) => labels[key] === value),
      );
      expect(own, name).toHaveLength(1);
      expect(own[0].policyTypes).toEqual(['Ingress', 'Egress']);
    }
  });
});

/** The servers of SECURITY.md, by what only their rule of egress has. */
function getServer({ ports }: Manifest): string {
  const [{ port, endPort }] = ports;
  if (endPort !== undefined) return 'receivers';
  const servers: Record<string, string> = {
    53: 'DNS',
    5432: 'PostgreSQL',
    6379: 'Redis',
    7233: 'Temporal',
    4318: 'OTLP',
    587: 'mail server',
    443: 'OpenID provider',
    6443: 'API server',
    hooks: 'probe',
    http: 'API',
  };
  return servers[port] ?? `port ${port}`;
}

it('the policies of both charts let each process reach exactly what SECURITY.md lists for it', () => {
  const getProcess = ({ metadata }: Manifest) => metadata.labels['app.kubernetes.io/component'];
  const policies = ofKind([...render(), ...renderOperator()], 'NetworkPolicy');
  const allowed = policies.map((one) => [getProcess(one), one.spec.egress.map(getServer).toSorted()]);
  const isElsewhere = (name: string) => ['identity', 'orgctl', 'import'].includes(name); // no pods of the charts
  const listed = [...connections].filter(([name]) => !isElsewhere(name));
  expect(Object.fromEntries(allowed)).toEqual(
    Object.fromEntries(listed.map(([name, servers]) => [name, servers.toSorted()])),
  );
});

describe('NetworkPolicies', () => {
  it('allow the API egress to DNS, PostgreSQL, Redis and the trace collector only', () => {
    expect(listPorts(policy('api').egress)).toEqual([[53, 53], [5432], [6379], [4318]]);
    expect(listPorts(policy('api', { otlp: { endpoint: '' } }).egress)).toEqual([[53, 53], [5432], [6379]]);
  });

  it('reach name servers at the port of their pods, which OpenShift changes', () => {
    const dns = { port: 5353 };
    expect(listPorts(policy('api', { networkPolicy: { dns } }).egress)[0]).toEqual([5353, 5353]);
  });

  it('allow the migrations egress to DNS and PostgreSQL, and no ingress', () => {
    expect(listPorts(policy('migrations').egress)).toEqual([[53, 53], [5432]]);
    expect(policy('migrations').ingress).toEqual([]);
  });

  it('allow a worker egress to DNS, PostgreSQL, Temporal, the trace collector, the mail server, receivers and the probe only', () => {
    expect(listPorts(policy('worker').egress).toSorted()).toEqual([
      [1],
      [4318],
      [53, 53],
      [5432],
      [587],
      [7233],
      ['hooks'],
    ]);
  });

  it('allow the console egress to the addresses of webhooks at port 443 only, for OpenID providers', () => {
    const values = { worker: { webhookAllow: ['10.1.2.3'] } };
    const rule = policy('console', values).egress.at(-1);
    expect(rule.to).toEqual(towardsReceivers(values).to);
    expect(rule.ports).toEqual([{ port: 443, protocol: 'TCP' }]);
    expect(listPorts(policy('console').egress)).toEqual([[53, 53], [5432], [7233], [443]]);
  });

  it('allow a worker ingress from metrics readers only', () => {
    expect(listPorts(policy('worker').ingress)).toEqual([['metrics']]);
  });

  it('allow webhooks egress to exactly the addresses that the worker treats as public', () => {
    const [public4, public6] = towardsReceivers().to.map((peer: Manifest) => peer.ipBlock);
    const nothingAllowed = new BlockList();
    const isLetOut = (address: string) => {
      const block = address.includes(':') ? public6 : public4;
      return inBlock(block.cidr, address) && !block.except.some((one: string) => inBlock(one, address));
    };
    // The first and the last address of each block, and their neighbors, where two lists would
    // differ.
    const edges = [...public4.except, ...public6.except, public4.cidr, public6.cidr].flatMap(listEdges);
    expect(edges.length).toBeGreaterThan(70);
    for (const address of [...edges, '93.184.215.14', '1.1.1.1', '2606:4700::1111', 'fd00::1', 'fe80::1', '::1'])
      expect([address, isLetOut(address)]).toEqual([address, checkAddress(address, nothingAllowed).ok]);
  });

  it('allow webhooks egress to any port, except what an operator excludes', () => {
    const rule = towardsReceivers({ networkPolicy: { webhooks: { except: ['52.0.0.0/8', '2a00::/16'] } } });
    expect(rule.ports).toEqual([{ port: 1, endPort: 65_535, protocol: 'TCP' }]);
    expect(rule.to[0].ipBlock.except).toContain('52.0.0.0/8');
    expect(rule.to[1].ipBlock.except).toContain('2a00::/16');
  });

  it('allow webhooks egress to IPv4 alone when IPv6 is turned off', () => {
    const rule = towardsReceivers({ networkPolicy: { webhooks: { ipv6: false } } });
    expect(rule.to.map((peer: Manifest) => peer.ipBlock.cidr)).toEqual(['0.0.0.0/0']);
  });

  it('allow webhooks egress to what WEBHOOK_ALLOW names', () => {
    const rule = towardsReceivers({ worker: { webhookAllow: ['10.1.2.3', '10.9.0.0/16', 'fd00::5'] } });
    expect(rule.to.slice(2)).toEqual(
      ['10.1.2.3/32', '10.9.0.0/16', 'fd00::5/128'].map((cidr) => ({ ipBlock: { cidr } })),
    );
  });

  it('allow ingress to the probe from workers only, and only while there is one', () => {
    const probe = {
      'app.kubernetes.io/name': 'org-api',
      'app.kubernetes.io/instance': 'us',
      'app.kubernetes.io/component': 'probe',
    };
    expect(policy('worker').egress.at(-1)).toEqual({
      to: [{ podSelector: { matchLabels: probe } }],
      ports: [{ port: 'hooks' }],
    });
    expect(policy('probe').ingress).toEqual([
      {
        from: [{ podSelector: { matchLabels: { ...probe, 'app.kubernetes.io/component': 'worker' } } }],
        ports: [{ port: 'hooks' }],
      },
    ]);
    const without = render({ values: { probe: { enabled: false } } });
    expect(JSON.stringify(ofKind(without, 'NetworkPolicy'))).not.toContain('probe');
  });

  it('allow ingress from what an operator names, and from the probe', () => {
    const gateway = { namespaceSelector: { matchLabels: { name: 'gateways' } } };
    const values = { networkPolicy: { http: { from: [gateway] } } };
    expect(policy('api', values).ingress[0].from).toHaveLength(2);
    expect(policy('console', values).ingress[0].from).toEqual([gateway]);
  });

  it('of both charts open nothing for an emptied list of peers: it stands for no one', () => {
    const networkPolicy = { metrics: { from: [] }, dns: { to: [] } };
    const operator = renderOperator({ networkPolicy: { ...operatorPeers, ...networkPolicy } });
    const policies = ofKind([...render({ values: { networkPolicy } }), ...operator], 'NetworkPolicy');
    const rules = policies.flatMap(({ spec }) => [...(spec.ingress ?? []), ...(spec.egress ?? [])]);
    expect(rules.length).toBeGreaterThan(10);
    for (const rule of rules) expect((rule.from ?? rule.to).length).toBeGreaterThan(0);
    expect(listPorts(rules).flat()).not.toContain('metrics');
    expect(listPorts(rules).flat()).not.toContain(53);
  });

  it('of both charts have the rules that an operator adds', () => {
    const mesh = { ports: [{ port: 15_008, protocol: 'TCP' }] };
    const networkPolicy = { extraIngress: [mesh], extraEgress: [mesh] };
    const operator = renderOperator({ networkPolicy: { ...operatorPeers, ...networkPolicy } });
    for (const { spec } of ofKind([...render({ values: { networkPolicy } }), ...operator], 'NetworkPolicy'))
      expect([spec.ingress.at(-1), spec.egress.at(-1)]).toEqual([mesh, mesh]);
  });

  it('are absent when switched off', () => {
    expect(ofKind(render({ values: { networkPolicy: { enabled: false } } }), 'NetworkPolicy')).toEqual([]);
  });
});

function inBlock(cidr: string, address: string): boolean {
  const [network = '', bits] = cidr.split('/');
  const family = network.includes(':') ? 'ipv6' : 'ipv4';
  if (address.includes(':') !== (family === 'ipv6')) return false;
  const list = new BlockList();
  list.addSubnet(network, Number(bits), family);
  return list.check(address, family);
}

/** Returns the first and last address of a block, and the neighbors that exist. */
function listEdges(cidr: string): string[] {
  const [network = '', bits] = cidr.split('/');
  const width = network.includes(':') ? 128n : 32n;
  const first = toNumber(network);
  const last = first + (1n << (width - BigInt(bits ?? 0))) - 1n;
  return [first - 1n, first, last, last + 1n]
    .filter((value) => value >= 0n && value < 1n << width)
    .map((value) => toText(value, width));
}

function toNumber(address: string): bigint {
  if (!address.includes(':')) return address.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n);
  const [head = '', tail = ''] = address.split('::');
  const groups = (text: string) => text.split(':').filter((group) => group !== '');
  const zeros = new Array(8 - groups(head).length - groups(tail).length).fill('0');
  return [...groups(head), ...zeros, ...groups(tail)].reduce((sum, group) => sum * 65_536n + BigInt(`0x${group}`), 0n);
}

function toText(value: bigint, width: bigint): string {
  const parts = (count: number, bits: bigint) =>
    Array.from({ length: count }, (_, index) => (value >> (bits * BigInt(count - 1 - index))) & ((1n << bits) - 1n));
  return width === 32n
    ? parts(4, 8n).join('.')
    : parts(8, 16n)
        .map((group) => group.toString(16))
        .join(':');
}
