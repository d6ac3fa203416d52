/**
 * Evaluates the alerts with Prometheus' engine (promtool): each fires when it should, is quiet when
 * all is well, and fires when its data is missing.
 */
import { describe, expect, it } from 'vitest';
import {
  always,
  api,
  attempts,
  deployments,
  growing,
  healthy,
  inCluster,
  ofOthers,
  requests,
  type Series,
  visits,
  worker,
} from './alerts-data.ts';
import {
  evaluateRules,
  evaluation,
  listAlerts,
  promtool,
  renderAlerts,
  renderRules,
  watched,
  withoutMetric,
} from './promtool.ts';

/** Building promtool with a cold cache takes minutes. */
const buildMs = 900_000;
const rules = renderRules();
const alerts = renderAlerts();
const names = [...new Set(alerts.map(({ alert }) => alert))].sort();

/** Unhealthy data → exactly the alerts that fire then. `at` is in minutes, 70 by default. */
interface Fault {
  when: string;
  changed: Series;
  firing: string[];
  at?: number;
}

const faults: Fault[] = [
  { when: '2 % of reads fail', changed: requests({ failed: 12 }), firing: ['OrgApiReadErrors'] },
  { when: '0.8 % of reads fail, for hours', changed: requests({ failed: 5 }), at: 440, firing: ['OrgApiReadErrors'] },
  {
    when: '0.05 % of reads fail, which the promise allows',
    changed: requests({ perMinute: 2_000, failed: 1 }),
    at: 440,
    firing: [],
  },
  {
    when: 'one of ten reads in an hour fails, which proves nothing',
    changed: {
      ...requests({ perMinute: 0.2 }),
      [`org_api_request_duration_seconds_count{${api},operation="getOrg",status="500"}`]: growing(0.02),
    },
    firing: [],
  },
  { when: 'there are no reads at all', changed: requests({ perMinute: 0 }), firing: [] },
  { when: 'a fifth of reads is slow', changed: requests({ slow: 120 }), firing: ['OrgApiReadLatency'] },
  { when: '7 % of reads are slow, for hours', changed: requests({ slow: 42 }), at: 440, firing: ['OrgApiReadLatency'] },
  {
    when: 'PostgreSQL rejects audit entries',
    changed: { [`org_api_audit_entries_rejected_total{${api}}`]: growing(1) },
    firing: ['OrgApiAuditLogRejected'],
  },
  {
    when: 'pods have no memory left for responses',
    changed: { [`org_api_response_waits_total{${api},end="rejected",limit="process"}`]: growing(5) },
    firing: ['OrgApiResponseMemoryExhausted'],
  },
  {
    when: 'Redis is unavailable',
    changed: { [`org_api_limiter_without_redis{${api}}`]: always(1) },
    firing: ['OrgApiLimiterWithoutRedis'],
  },
  {
    when: 'the database pool is too small',
    changed: { [`org_api_database_connections{${api},state="waiting"}`]: always(4) },
    firing: ['OrgApiDatabasePoolExhausted'],
  },
  {
    when: 'the ledger lacks a delivery',
    changed: { [`org_api_ledger_difference{${worker}}`]: always(1) },
    firing: ['OrgApiLedgerDifference'],
  },
  {
    when: 'the ledger has a delivery too many',
    changed: { [`org_api_ledger_difference{${worker}}`]: always(-1) },
    firing: ['OrgApiLedgerDifference'],
  },
  {
    when: 'the ledger is no longer read',
    changed: { [`org_api_ledger_read_timestamp_seconds{${worker}}`]: `0+60x30 ${'1800 '.repeat(60).trim()}` },
    firing: ['OrgApiLedgerStale'],
  },
  {
    when: 'the ledger lacks a delivery and has another too many, which its difference does not show',
    changed: { [`org_api_ledger_missing{${worker}}`]: always(1), [`org_api_ledger_surplus{${worker}}`]: always(1) },
    firing: ['OrgApiLedgerDifference'],
  },
  {
    when: 'deliveries stay overdue, because a receiver hangs',
    changed: { [`org_api_ledger_overdue{${worker}}`]: always(300) },
    firing: ['OrgApiDeliveriesOverdue'],
  },
  {
    when: 'a receiver hangs for a quarter of an hour',
    changed: { [`org_api_ledger_overdue{${worker}}`]: `0x50 300x15 0x60` },
    firing: [],
  },
  {
    when: 'deliveries stay overdue, and not because of their receivers',
    changed: { [`org_api_ledger_overdue{${worker}}`]: always(3), [`org_api_ledger_stuck{${worker}}`]: always(3) },
    firing: ['OrgApiDeliveriesOverdue', 'OrgApiDeliveriesStuck'],
  },
  {
    when: 'deliveries have been stuck for ten minutes, which is before the alert about late deliveries',
    changed: { [`org_api_ledger_overdue{${worker}}`]: '0x55 3x60', [`org_api_ledger_stuck{${worker}}`]: '0x55 3x60' },
    firing: ['OrgApiDeliveriesStuck'],
  },
  {
    when: 'every attempt at many webhooks fails',
    changed: { ...attempts({ delivered: 0, failed: 60 }), [`org_api_webhooks{${worker},state="failing"}`]: always(12) },
    firing: ['OrgApiDeliveriesFailing'],
  },
  { when: 'one busy receiver fails', changed: attempts({ delivered: 1, failed: 200 }), firing: [] },
  {
    when: 'the network of the service fails',
    changed: { [`org_api_delivery_internal_errors_total{${worker},cause="dns_unavailable"}`]: growing(4) },
    firing: ['OrgApiInternalErrors'],
  },
  {
    when: 'Temporal forgot workflows',
    changed: { [`org_api_deliveries_repaired_total{${worker},kind="late"}`]: growing(2) },
    firing: ['OrgApiDeliveriesRepaired'],
  },
  {
    when: 'a new worker stopped because of an internal error',
    changed: { [`org_api_worker_is_stopped{${worker}}`]: always(1) },
    firing: ['OrgApiWorkerStopped'],
  },
  {
    when: 'many webhooks are suspended',
    changed: { [`org_api_webhooks_suspended_total{${worker}}`]: growing(1) },
    firing: ['OrgApiWebhooksSuspended'],
  },
  {
    when: 'one worker of two does not reach Temporal',
    changed: { [`org_api_temporal_answered_timestamp_seconds{${worker.replace('worker-1', 'worker-3')}}`]: always(0) },
    firing: ['OrgApiTemporalUnreachable'],
  },
  {
    when: 'first attempts wait in Temporal',
    changed: { [`org_api_queue_backlog_age_seconds{${worker},kind="workflow"}`]: always(70) },
    firing: ['OrgApiDeliveryQueueSlow'],
  },
  {
    when: 'retries wait in Temporal for long',
    changed: { [`org_api_queue_backlog_age_seconds{${worker},kind="activity"}`]: always(700) },
    firing: ['OrgApiDeliveryQueueSlow'],
  },
  {
    when: 'no pod of the API answers Prometheus',
    changed: { [`up{${api}}`]: always(0) },
    firing: ['OrgApiMetricsMissing'],
  },
  {
    when: 'a rotated secret cannot be used',
    changed: { [`org_api_setting_rejected{${api},setting="REDIS_URL"}`]: always(1) },
    firing: ['OrgApiSettingRejected'],
  },
  {
    when: 'no worker runs maintenance',
    changed: { [`org_api_maintenance_last_run_timestamp_seconds{${worker}}`]: always(0) },
    firing: ['OrgApiMaintenanceStalled'],
  },
  {
    when: 'one step of maintenance keeps failing, and the others continue',
    changed: { [`org_api_maintenance_failures_total{${worker},step="end_grants"}`]: growing(6) },
    firing: ['OrgApiMaintenanceFailing'],
  },
  {
    when: 'a month has no partition',
    changed: { [`org_api_audit_log_default_partition_bytes{${worker}}`]: always(8192) },
    firing: ['OrgApiAuditLogDefaultPartition'],
  },
  {
    when: 'new entries of the audit log get no link for ten minutes',
    changed: { [`org_api_audit_log_unlinked_age_seconds{${worker}}`]: growing(60) },
    firing: ['OrgApiAuditLogChainStalled'],
  },
  {
    when: 'the platform has erased 26 of 50 families',
    changed: { [`org_api_erasure_limit_used_ratio{${worker}}`]: always(0.52) },
    firing: ['OrgApiErasuresNearLimit'],
  },
  {
    when: 'the mail server rejects the sign-in',
    changed: {
      [`org_api_mail_tries_total{${worker},outcome="sent"}`]: always(9),
      [`org_api_mail_tries_total{${worker},outcome="misconfigured"}`]: growing(1),
    },
    firing: ['OrgApiMailMisconfigured'],
  },
  {
    when: 'the mail server takes some mails, and is sometimes away',
    changed: { [`org_api_mail_tries_total{${worker},outcome="unavailable"}`]: growing(1) },
    firing: [],
  },
  {
    when: 'the newest migration fails again and again',
    changed: { 'kube_job_status_failed{namespace="org-api-us",job_name="us-org-api-migrate-2"}': always(3) },
    firing: ['OrgApiMigrationsFailing'],
  },
  { when: 'a fifth of the console’s pages fails', changed: visits({ failed: 1 }), firing: ['OrgApiConsoleErrors'] },
  {
    when: 'one page of the console fails in a quiet hour',
    changed: visits({ perMinute: 0.1, failed: 0.02 }),
    firing: [],
  },
  { when: 'a fifth of the console’s pages is slow', changed: visits({ slow: 1 }), firing: ['OrgApiConsoleLatency'] },
  { when: 'the console has no visitors', changed: visits({ perMinute: 0 }), firing: [] },
  {
    when: 'a migration that may be tried once has failed',
    changed: {
      'kube_job_status_failed{namespace="org-api-us",job_name="us-org-api-migrate-2"}': `${'_ '.repeat(60)}${always(1)}`,
      'kube_job_failed{namespace="org-api-us",job_name="us-org-api-migrate-2",condition="true",reason="BackoffLimitExceeded"}': `${'_ '.repeat(60)}${always(1)}`,
    },
    firing: ['OrgApiMigrationsFailing'],
  },
  {
    when: 'a migration hangs',
    changed: { 'kube_job_status_failed{namespace="org-api-us",job_name="us-org-api-migrate-2"}': always(0) },
    firing: ['OrgApiMigrationsFailing'],
  },
  {
    when: 'a migration has been running for ten minutes, and failed once',
    changed: {
      'kube_job_status_failed{namespace="org-api-us",job_name="us-org-api-migrate-2"}': `${'_ '.repeat(60)}${always(1)}`,
    },
    firing: [],
  },
  {
    when: 'the Job of finished migrations has been removed',
    changed: {
      'kube_job_status_failed{namespace="org-api-us",job_name="us-org-api-migrate-1"}': '3x20 _x60',
      'kube_job_complete{namespace="org-api-us",job_name="us-org-api-migrate-1",condition="true"}': '1x20 _x60',
    },
    firing: [],
  },
  {
    when: 'a pod does not become ready',
    changed: deployments('replicas_unavailable', 1),
    firing: ['OrgApiPodsNotReady'],
  },
  { when: 'a rollout stops half-way', changed: deployments('replicas_updated', 1), firing: ['OrgApiRolloutStuck'] },
];

const evaluate = (tests: object[], everyMinutes = 2) => evaluateRules(rules, tests, everyMinutes);

describe('the rules', () => {
  it('are valid for Prometheus', () => {
    const { status, output } = promtool(['check', 'rules', '--lint-fatal', '--lint=duplicate-rules', 'rules.json'], {
      'rules.json': rules,
    });
    expect(output).toContain('SUCCESS');
    expect(status).toBe(0);
  });

  it('have severity, summary, description, region and runbook in each alert, and no secret, person or organization', () => {
    expect(names.length).toBeGreaterThan(20);
    for (const { alert, labels, annotations = {} } of alerts) {
      expect(labels, alert).toMatchObject({ region: 'us', installation: 'org-api-us/us-org-api' });
      expect(['critical', 'warning'], alert).toContain(labels.severity);
      expect(annotations.runbook_url).toBe(`https://git.example.com/runbooks/${alert}.md`);
      expect(annotations.summary?.length, alert).toBeGreaterThan(10);
      expect(annotations.description?.length, alert).toBeGreaterThan(30);
      const shown = JSON.stringify(annotations).match(/\$labels\.\w+/g) ?? [];
      expect(['$labels.setting', '$labels.deployment'], alert).toEqual(expect.arrayContaining(shown));
    }
  });

  it('select this release only', () => {
    for (const { alert, expr } of alerts)
      for (const [selector = ''] of expr.matchAll(/\{[^}]*\}/g))
        expect(selector, alert).toMatch(/installation="org-api-us\/us-org-api"|namespace="org-api-us"/);
  });
});

describe('alerts', { timeout: buildMs }, () => {
  it('do not fire while all is well, whatever another release does', () => {
    const tests = [evaluation('well', healthy, []), evaluation('well for hours', healthy, [], 440)];
    expect(evaluate(tests, 1)).toMatchObject({ status: 0 });
  });

  it.each(faults)('fire when $when: $firing', ({ when, changed, firing, at }) => {
    const result = evaluate([evaluation(when, { ...healthy, ...changed }, firing, at)]);
    expect(result.output).toContain('SUCCESS');
    expect(result.status).toBe(0);
  });

  it('all have a case above in which they fire', () => {
    expect([...new Set(faults.flatMap(({ firing }) => firing))].sort()).toEqual(names);
  });

  it('all fire without any data but another release’s', () => {
    const result = evaluate([evaluation('nothing', ofOthers, names)]);
    expect(result.output).toContain('SUCCESS');
    expect(result.status).toBe(0);
  });

  it('all fire in a cluster where it is down, although it is well in another cluster of the same ruler', () => {
    const east = renderRules({ values: { monitoring: { ...watched.monitoring, cluster: 'east' } } });
    const both = { ...inCluster('east', healthy), ...inCluster('west', healthy) };
    const tests = [evaluation('both are well', both, []), evaluation('down', inCluster('west', healthy), names)];
    expect(evaluateRules(east, tests)).toMatchObject({ status: 0, output: expect.stringContaining('SUCCESS') });
    for (const { labels } of listAlerts(east)) expect(labels).toMatchObject({ cluster: 'east' });
  });

  it.each(alerts.map(({ alert, expr, labels }) => [alert, labels.severity, expr] as const))(
    '%s (%s) fires when its metric alone is missing',
    (alert, _, expr) => {
      const own = [...expr.matchAll(/absent\((\w+)\{/g)].map(([, metric = '']) => metric);
      expect(own.length).toBeGreaterThan(0);
      expect(evaluate(own.map((metric) => withoutMetric(alert, metric, healthy)))).toMatchObject({ status: 0 });
    },
  );

  it('can be left out by name, and together with the metrics of kube-state-metrics', () => {
    const renderAlertRules = (values: object) =>
      renderAlerts({
        values: { monitoring: { enabled: true, rules: { runbookBaseUrl: 'https://x.example.com', ...values } } },
      }).map(({ alert }) => alert);
    expect(renderAlertRules({ disabled: ['OrgApiReadLatency'] })).not.toContain('OrgApiReadLatency');
    expect(renderAlertRules({ kubeStateMetrics: false })).not.toContain('OrgApiPodsNotReady');
    const withoutConsole = renderAlerts({ values: { console: { enabled: false } } }).map(({ alert }) => alert);
    expect(withoutConsole.filter((alert) => alert.includes('Console'))).toEqual([]);
    expect(renderAlertRules({})).toEqual(alerts.map(({ alert }) => alert));
  });
});
