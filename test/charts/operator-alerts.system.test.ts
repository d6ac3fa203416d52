/**
 * Evaluates the alerts of the operator's chart with Prometheus' engine (promtool): each fires when
 * it should, is quiet when all is well, and fires when its data is missing.
 */
import { describe, expect, it } from 'vitest';
import { createLog } from '#runtime/log.ts';
import { reportSettings } from '#runtime/settings/watch.ts';
import { readRunbooks } from '#test/documents.ts';
import { pick } from '#test/render-charts.ts';
import { createMetrics } from '../../apps/operator/metrics.ts';
import { settingNames } from '../../apps/operator/region/connections.ts';
import { always, growing, inCluster, type Series } from './alerts-data.ts';
import {
  evaluateRules,
  evaluation,
  listAlerts,
  listMetrics,
  promtool,
  renderOperator,
  watched,
  withoutMetric,
} from './promtool.ts';

/** Building promtool with a cold cache takes minutes. */
const buildMs = 900_000;
const rules = pick(renderOperator(), 'PrometheusRule').spec;
const alerts = listAlerts(rules);
const names = alerts.map(({ alert }) => alert).sort();

const labels = (pod: string) => `installation="org-api-us/operator",region="us",component="operator",pod="${pod}"`;
const other = 'installation="org-api-ca/operator",region="ca",component="operator",pod="x"';
const buildStatus = (of: string, type: string, current: string): Series =>
  Object.fromEntries(
    ['True', 'False', 'Unknown'].map((status) => [
      `org_api_operator_region_condition{${of},type="${type}",status="${status}"}`,
      always(status === current ? 1 : 0),
    ]),
  );

const ofOthers: Series = {
  [`org_api_operator_is_leader{${other}}`]: always(0),
  [`org_api_operator_failures_total{${other},kind="Region"}`]: growing(7),
  [`org_api_setting_rejected{${other},setting="DATABASE_URL"}`]: always(1),
  ...buildStatus(other, 'Ready', 'False'),
  ...buildStatus(other, 'LedgerBalanced', 'False'),
  ...buildStatus(other, 'Delivering', 'False'),
  ...buildStatus(other, 'KeysFresh', 'False'),
};
const healthy: Series = {
  ...ofOthers,
  [`org_api_operator_is_leader{${labels('a')}}`]: always(1),
  [`org_api_operator_is_leader{${labels('b')}}`]: always(0),
  // One transient failure per hour is normal.
  [`org_api_operator_failures_total{${labels('a')},kind="Region"}`]: '0+0x60 1x480',
  [`org_api_operator_failures_total{${labels('a')},kind="WebhookSubscription"}`]: always(0),
  ...buildStatus(labels('a'), 'Ready', 'True'),
  ...buildStatus(labels('a'), 'LedgerBalanced', 'True'),
  ...buildStatus(labels('a'), 'Delivering', 'True'),
  ...buildStatus(labels('a'), 'KeysFresh', 'True'),
  [`org_api_setting_rejected{${labels('a')},setting="DATABASE_URL"}`]: always(0),
};

const faults: { when: string; changed: Series; firing: string[] }[] = [
  {
    when: 'no replica leads',
    changed: { [`org_api_operator_is_leader{${labels('a')}}`]: always(0) },
    firing: ['OrgApiOperatorNotLeading'],
  },
  {
    when: 'two replicas believe that they lead',
    changed: { [`org_api_operator_is_leader{${labels('b')}}`]: always(1) },
    firing: ['OrgApiOperatorNotLeading'],
  },
  {
    when: 'the leader changes',
    changed: {
      [`org_api_operator_is_leader{${labels('a')}}`]: '1x66 0x60',
      [`org_api_operator_is_leader{${labels('b')}}`]: '0x68 1x60',
    },
    firing: [],
  },
  {
    when: 'work on one object fails with the longest waits',
    changed: { [`org_api_operator_failures_total{${labels('a')},kind="WebhookSubscription"}`]: growing(0.17) },
    firing: ['OrgApiOperatorFailing'],
  },
  {
    when: 'a changed Secret is rejected',
    changed: { [`org_api_setting_rejected{${labels('a')},setting="DATABASE_URL"}`]: always(1) },
    firing: ['OrgApiOperatorSettingRejected'],
  },
  {
    when: 'the Region is not Ready',
    changed: buildStatus(labels('a'), 'Ready', 'False'),
    firing: ['OrgApiRegionNotReady'],
  },
  {
    when: 'the operator cannot find out whether the Region is Ready',
    changed: buildStatus(labels('a'), 'Ready', 'Unknown'),
    firing: ['OrgApiRegionNotReady'],
  },
  {
    when: 'the ledger differs',
    changed: { ...buildStatus(labels('a'), 'Ready', 'False'), ...buildStatus(labels('a'), 'LedgerBalanced', 'False') },
    firing: ['OrgApiRegionLedgerDifference', 'OrgApiRegionNotReady'],
  },
  {
    when: 'deliveries have been held for more than an hour',
    changed: buildStatus(labels('a'), 'Delivering', 'False'),
    firing: ['OrgApiRegionDeliveriesHeld'],
  },
  {
    when: 'an old key has been needed for more than an hour',
    changed: buildStatus(labels('a'), 'KeysFresh', 'False'),
    firing: ['OrgApiRegionKeysOld'],
  },
  {
    when: 'the ledger cannot be read',
    changed: buildStatus(labels('a'), 'LedgerBalanced', 'Unknown'),
    firing: [],
  },
];

const evaluate = (tests: object[], everyMinutes = 2) => evaluateRules(rules, tests, everyMinutes);

describe('the rules of the operator', () => {
  it('are valid for Prometheus', () => {
    const { status, output } = promtool(['check', 'rules', '--lint-fatal', '--lint=duplicate-rules', 'rules.json'], {
      'rules.json': rules,
    });
    expect(output).toContain('SUCCESS');
    expect(status).toBe(0);
  });

  it('have severity, summary, description, region and runbook in each alert', () => {
    for (const { alert, labels: own, annotations = {} } of alerts) {
      expect(own, alert).toMatchObject({ region: 'us', installation: 'org-api-us/operator', component: 'operator' });
      expect(['critical', 'warning'], alert).toContain(own.severity);
      expect(annotations.runbook_url).toBe(`https://git.example.com/runbooks/${alert}.md`);
      expect(annotations.summary?.length, alert).toBeGreaterThan(10);
      expect(annotations.description?.length, alert).toBeGreaterThan(30);
    }
  });

  it('use metrics that the operator exports, and so do their runbooks', async () => {
    const { registry } = createMetrics();
    reportSettings({ names: settingNames, registry, log: createLog({ level: 'silent', name: 'test', region: 'us' }) });
    const page = await registry.metrics();
    const exported = [...page.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name);
    const queries = [...readRunbooks('org-api-operator').values()].flatMap(({ text }) =>
      [...text.matchAll(/```promql\n([\s\S]*?)```/g)].flatMap(([, block = '']) => block.trim().split('\n')),
    );
    const named = [...alerts.map(({ expr }) => expr), ...queries].flatMap(listMetrics);

    expect(named).toContain('org_api_operator_region_condition');
    expect(named.filter((name) => !exported.includes(name))).toEqual([]);
  });
});

describe('alerts of the operator', { timeout: buildMs }, () => {
  it('do not fire while all is well, whatever another operator does', () => {
    const tests = [evaluation('well', healthy, []), evaluation('well for hours', healthy, [], 440)];
    expect(evaluate(tests, 1)).toMatchObject({ status: 0 });
  });

  it.each(faults)('fire when $when: $firing', ({ when, changed, firing }) => {
    const result = evaluate([evaluation(when, { ...healthy, ...changed }, firing)]);
    expect(result.output).toContain('SUCCESS');
    expect(result.status).toBe(0);
  });

  it('all have a case above in which they fire', () => {
    expect([...new Set(faults.flatMap(({ firing }) => firing))].sort()).toEqual(names);
  });

  it('all fire without any data but another operator’s', () => {
    const result = evaluate([evaluation('nothing', ofOthers, names)]);
    expect(result.output).toContain('SUCCESS');
    expect(result.status).toBe(0);
  });

  it('all fire in a cluster where it is down, although it is well in another cluster of the same ruler', () => {
    const east = pick(
      renderOperator({ monitoring: { ...watched.monitoring, cluster: 'east' } }),
      'PrometheusRule',
    ).spec;
    const both = { ...inCluster('east', healthy), ...inCluster('west', healthy) };
    const tests = [evaluation('both are well', both, []), evaluation('down', inCluster('west', healthy), names)];
    expect(evaluateRules(east, tests)).toMatchObject({ status: 0, output: expect.stringContaining('SUCCESS') });
    for (const { labels } of listAlerts(east)) expect(labels).toMatchObject({ cluster: 'east' });
  });

  it.each(alerts.map(({ alert, expr }) => [alert, expr] as const))(
    '%s fires when its metric alone is missing',
    (alert, expr) => {
      const own = [...expr.matchAll(/absent\((\w+)\{/g)].map(([, metric = '']) => metric);
      expect(own.length).toBeGreaterThan(0);
      expect(evaluate(own.map((metric) => withoutMetric(alert, metric, healthy, 70)))).toMatchObject({ status: 0 });
    },
  );

  it('can be left out by name', () => {
    const rules = { runbookBaseUrl: 'https://x.example.com', disabled: ['OrgApiRegionNotReady'] };
    const monitoring = { enabled: true, rules };
    const left = listAlerts(pick(renderOperator({ monitoring }), 'PrometheusRule').spec).map(({ alert }) => alert);
    expect(left.sort()).toEqual(names.filter((name) => name !== 'OrgApiRegionNotReady'));
  });
});
