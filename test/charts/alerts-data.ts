/** Prometheus data of a healthy release: series → values in promtool's notation, one per minute. */
export type Series = Record<string, string>;

const minutes = 480;
const always = (value: number) => `${value}x${minutes}`;
/** A counter that grows by this amount per minute. */
export const growing = (perMinute: number) => `0+${perMinute}x${minutes}`;
/** The present in seconds: promtool's clock begins at 0. */
const now = growing(60);

/** The labels that the ServiceMonitor gives to every series of ci/us-values.yaml. */
const target = (component: string, pod: string) =>
  `installation="org-api-us/us-org-api",region="us",component="${component}",pod="${pod}"`;
export const api = target('api', 'api-1');
export const worker = target('worker', 'worker-1');
const otherWorker = target('worker', 'worker-2');
const cluster = 'namespace="org-api-us"';
const count = 'org_api_request_duration_seconds_count';
const bucket = 'org_api_request_duration_seconds_bucket';

/** The series of a release that names its cluster, where series of several clusters meet. */
export const inCluster = (name: string, series: Series): Series =>
  Object.fromEntries(
    Object.entries(series).map(([one, values]) => [
      one.replace('{', `{cluster="${name}",`).replace('installation="', `installation="${name}/`),
      values,
    ]),
  );

/** Data of another, unhealthy release: it must neither trigger nor silence an alert of this one. */
const other = 'installation="org-api-ca/ca-org-api",region="ca",component="worker",pod="x"';
export const ofOthers: Series = {
  [`org_api_ledger_difference{${other}}`]: always(7),
  [`org_api_ledger_missing{${other}}`]: always(7),
  [`org_api_ledger_surplus{${other}}`]: always(7),
  [`org_api_ledger_unexplained{${other}}`]: always(7),
  [`org_api_ledger_overdue{${other}}`]: always(7),
  [`org_api_ledger_stuck{${other}}`]: always(7),
  [`org_api_maintenance_failures_total{${other},step="end_grants"}`]: growing(7),
  [`up{${other}}`]: always(1),
  'kube_job_status_failed{namespace="org-api-ca",job_name="ca-org-api-migrate-1"}': always(9),
};

/**
 * Requests, of which `failed` per minute get a 503 and `slow` per minute take longer than 250 ms,
 * besides the kubelet's probes.
 */
export function requests({ perMinute = 600, failed = 0, slow = 0 }): Series {
  const good = `${api},operation="getOrg",status="200"`;
  return {
    [`${count}{${api},operation="livez",status="200"}`]: growing(6),
    [`${bucket}{${api},operation="livez",status="200",le="0.25"}`]: growing(6),
    [`${count}{${good}}`]: growing(perMinute - failed),
    [`${bucket}{${good},le="0.25"}`]: growing(perMinute - failed - slow),
    ...(failed === 0 ? {} : { [`${count}{${api},operation="getOrg",status="503"}`]: growing(failed) }),
  };
}

/**
 * Requests to the console, of which `failed` per minute get a 500 and `slow` per minute take longer
 * than 2.5 s, besides the kubelet's probes.
 */
export function visits({ perMinute = 5, failed = 0, slow = 0 }): Series {
  const name = 'org_console_request_duration_seconds';
  const of = (operation: string, status: number) =>
    `${target('console', 'console-1')},operation="${operation}",status="${status}"`;
  return {
    [`${name}_count{${of('livez', 200)}}`]: growing(20),
    [`${name}_bucket{${of('livez', 200)},le="2.5"}`]: growing(20),
    [`${name}_count{${of('overview', 200)}}`]: growing(perMinute - failed),
    [`${name}_bucket{${of('overview', 200)},le="2.5"}`]: growing(perMinute - failed - slow),
    [`${name}_count{${of('overview', 500)}}`]: growing(failed),
    [`${name}_bucket{${of('overview', 500)},le="2.5"}`]: growing(failed),
  };
}

/** Attempts per minute by outcome. */
export function attempts(perMinute: Record<string, number>): Series {
  const name = 'org_api_delivery_attempt_duration_seconds_count';
  return Object.fromEntries(
    Object.entries(perMinute).map(([outcome, n]) => [`${name}{${worker},outcome="${outcome}",cause="c"}`, growing(n)]),
  );
}

export const healthy: Series = {
  ...ofOthers,
  [`up{${api}}`]: always(1),
  [`up{${worker}}`]: always(1),
  [`up{${target('console', 'console-1')}}`]: always(1),
  ...requests({}),
  ...visits({}),
  [`org_api_audit_entries_rejected_total{${api}}`]: always(0),
  [`org_api_limiter_without_redis{${api}}`]: always(0),
  [`org_api_responses_waiting{${api}}`]: always(2),
  // One key that does not read its responses exhausts only its own share.
  [`org_api_response_waits_total{${api},end="rejected",limit="key"}`]: growing(9),
  [`org_api_response_waits_total{${api},end="rejected",limit="process"}`]: always(3),
  [`org_api_database_connections{${api},state="waiting"}`]: `${'0 3 '.repeat(40)}${always(0)}`,
  [`org_api_setting_rejected{${api},setting="REDIS_URL"}`]: always(0),
  [`org_api_setting_rejected{${worker},setting="WEBHOOK_SECRET_KEYS"}`]: always(0),
  [`org_api_ledger_difference{${worker}}`]: always(0),
  [`org_api_ledger_difference{${otherWorker}}`]: always(0),
  [`org_api_ledger_missing{${worker}}`]: always(0),
  [`org_api_ledger_surplus{${worker}}`]: always(0),
  [`org_api_ledger_unexplained{${worker}}`]: always(0),
  [`org_api_ledger_overdue{${worker}}`]: `${'0 2 0 1 0 '.repeat(20)}${always(0)}`,
  [`org_api_ledger_stuck{${worker}}`]: `${'0 2 0 1 0 '.repeat(20)}${always(0)}`,
  [`org_api_ledger_read_timestamp_seconds{${worker}}`]: now,
  [`org_api_maintenance_last_run_timestamp_seconds{${worker}}`]: now,
  [`org_api_maintenance_last_run_timestamp_seconds{${otherWorker}}`]: always(0),
  // One transient failure per hour is normal.
  [`org_api_maintenance_failures_total{${worker},step="end_grants"}`]: `${'0+0x60 '.repeat(4)}1x${minutes}`,
  [`org_api_maintenance_failures_total{${worker},step="purge_deliveries"}`]: always(0),
  [`org_api_audit_log_default_partition_bytes{${worker}}`]: always(0),
  [`org_api_audit_log_unlinked_age_seconds{${worker}}`]: always(2),
  [`org_api_erasure_limit_used_ratio{${worker}}`]: always(0.5),
  [`org_api_mail_tries_total{${worker},outcome="sent"}`]: growing(1),
  [`org_api_mail_tries_total{${worker},outcome="misconfigured"}`]: always(0),
  [`org_api_deliveries_claimed_total{${worker}}`]: growing(60),
  [`org_api_worker_is_stopped{${worker}}`]: always(0),
  [`org_api_deliveries_repaired_total{${worker},kind="late"}`]: always(0),
  [`org_api_webhooks_suspended_total{${worker}}`]: always(0),
  [`org_api_webhooks{${worker},state="failing"}`]: always(1),
  ...attempts({ delivered: 60, failed: 6 }),
  [`org_api_temporal_answered_timestamp_seconds{${worker}}`]: now,
  [`org_api_queue_backlog_age_seconds{${worker},kind="workflow"}`]: always(1),
  [`org_api_queue_backlog_age_seconds{${worker},kind="activity"}`]: always(90),
  // A migration that failed three times and then succeeded keeps its count.
  [`kube_job_status_failed{${cluster},job_name="us-org-api-migrate-1"}`]: always(3),
  [`kube_job_complete{${cluster},job_name="us-org-api-migrate-1",condition="true"}`]: always(1),
  ...deployments('replicas_unavailable', 0),
  ...deployments('replicas', 2),
  ...deployments('replicas_updated', 2),
};

/** A metric of each Deployment, and of an unrelated one. */
export function deployments(figure: string, value: number): Series {
  const names = ['us-org-api-api', 'us-org-api-worker', 'us-org-api-console'];
  const own = names.map((name) => [`kube_deployment_status_${figure}{${cluster},deployment="${name}"}`, always(value)]);
  return Object.fromEntries([
    ...own,
    [`kube_deployment_status_${figure}{${cluster},deployment="neighbor"}`, always(figure === 'replicas' ? 9 : 1)],
  ]);
}

export { always };
