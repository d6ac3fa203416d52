/**
 * One panel: its title, its unit in Grafana's terms, and expressions with their legends. `self`
 * stands for the labels that select the chosen regions.
 */
export interface Panel {
  title: string;
  /** When an operator needs it. */
  description: string;
  unit: 'reqps' | 'ops' | 's' | 'percentunit' | 'short' | 'bytes' | 'dateTimeFromNow';
  kind: 'timeseries' | 'stat';
  queries: readonly [expression: string, legend: string][];
  /** The value from which a stat is red. */
  redFrom?: number;
}

/** A row of panels. */
export interface Row {
  title: string;
  panels: readonly Panel[];
}

const reads = 'region=~"$region",operation!~"livez|readyz"';
const self = 'region=~"$region"';

function lines(title: string, description: string, unit: Panel['unit'], ...queries: Panel['queries']): Panel {
  return { title, description, unit, kind: 'timeseries', queries };
}

function figure(title: string, description: string, expression: string, redFrom?: number): Panel {
  return {
    title,
    description,
    unit: 'short',
    kind: 'stat',
    queries: [[expression, '{{region}}']],
    ...(redFrom === undefined ? {} : { redFrom }),
  };
}

const quantile = (share: number, buckets: string): [expression: string, legend: string] => [
  `histogram_quantile(${share}, sum by (region, le) (rate(${buckets}[$__rate_interval])))`,
  `{{region}} p${share * 100}`,
];

const readsRow: Row = {
  title: 'Reads',
  panels: [
    lines('Answers', 'Reads a second by operation.', 'reqps', [
      `sum by (region, operation) (rate(org_api_request_duration_seconds_count{${reads}}[$__rate_interval]))`,
      '{{region}} {{operation}}',
    ]),
    lines('Refusals and faults', 'Answers that are no 2xx or 304, by status.', 'reqps', [
      'sum by (region, status) ' +
        `(rate(org_api_request_duration_seconds_count{${reads},status!~"2..|304"}[$__rate_interval]))`,
      '{{region}} {{status}}',
    ]),
    lines('Share of 5xx', 'The promise is 0.1 % over 30 days.', 'percentunit', [
      `(sum by (region) (rate(org_api_request_duration_seconds_count{${reads},status=~"5.."}[5m])) or sum by ` +
        `(region) (up{${self}}) * 0) / sum by (region) (rate(org_api_request_duration_seconds_count{${reads}}[5m]))`,
      '{{region}}',
    ]),
    lines(
      'Time to answer',
      'Of good answers. The promise is 250 ms for 99 %.',
      's',
      ...[0.5, 0.95, 0.99].map((share) =>
        quantile(share, `org_api_request_duration_seconds_bucket{${reads},status=~"2..|304"}`),
      ),
    ),
    lines(
      'Limiter',
      'Refusals with 429, and pods that limit without Redis.',
      'short',
      [
        `sum by (region) (rate(org_api_request_duration_seconds_count{${reads},status="429"}[$__rate_interval]))`,
        '{{region}} 429 a second',
      ],
      [`sum by (region) (org_api_limiter_without_redis{${self}})`, '{{region}} pods without Redis'],
      [
        `sum by (region, mode) (increase(org_api_limiter_switches_total{${self}}[$__rate_interval]))`,
        '{{region}} switches to {{mode}}',
      ],
    ),
    lines('Failed authentications', 'Refused with 401.', 'reqps', [
      `sum by (region) (rate(org_api_failed_authentications_total{${self}}[$__rate_interval]))`,
      '{{region}}',
    ]),
    lines(
      'Activity log',
      'Lines that share one insert, and lines that were refused: each is a read without an answer.',
      'short',
      [
        `sum by (region) (rate(org_api_activity_lines_per_insert_sum{${self}}[$__rate_interval])) / sum by ` +
          `(region) (rate(org_api_activity_lines_per_insert_count{${self}}[$__rate_interval]))`,
        '{{region}} lines an insert',
      ],
      [
        `sum by (region) (increase(org_api_activity_lines_refused_total{${self}}[$__rate_interval]))`,
        '{{region}} refused',
      ],
    ),
  ],
};

const webhooksRow: Row = {
  title: 'Webhooks',
  panels: [
    figure(
      'Ledger faults',
      'What is missing and what is surplus; must be 0.',
      `max by (region) (org_api_ledger_missing{${self}}) + max by (region) (org_api_ledger_surplus{${self}})`,
      1,
    ),
    figure(
      'Stuck',
      'Overdue deliveries that do not wait for their own receiver.',
      `max by (region) (org_api_ledger_stuck{${self}})`,
      1,
    ),
    figure(
      'Overdue',
      'Deliveries of active webhooks more than a minute late, also those that wait for a receiver that hangs or fails.',
      `max by (region) (org_api_ledger_overdue{${self}})`,
    ),
    figure('Waiting', 'Deliveries that wait for an attempt.', `max by (region) (org_api_ledger_waiting{${self}})`),
    figure('Held', 'Deliveries of paused and suspended webhooks.', `max by (region) (org_api_ledger_parked{${self}})`),
    lines(
      'Events',
      'Deliveries that events made, and those that workers took up, a second.',
      'ops',
      [`max by (region) (deriv(org_api_ledger_obligations{${self}}[5m]))`, '{{region}} made'],
      [`sum by (region) (rate(org_api_deliveries_claimed_total{${self}}[$__rate_interval]))`, '{{region}} claimed'],
    ),
    lines('Attempts by outcome', 'internal_error could not be sent and does not count.', 'ops', [
      `sum by (region, outcome) (rate(org_api_delivery_attempt_duration_seconds_count{${self}}[$__rate_interval]))`,
      '{{region}} {{outcome}}',
    ]),
    lines('Failed attempts by cause', 'The cause is a code that orgctl delivery show explains.', 'ops', [
      'sum by (region, cause) ' +
        `(rate(org_api_delivery_attempt_duration_seconds_count{${self},outcome!="delivered"}[$__rate_interval]))`,
      '{{region}} {{cause}}',
    ]),
    lines(
      'Time to the first attempt',
      'From the event to its first post.',
      's',
      ...[0.5, 0.95, 0.99].map((share) =>
        quantile(share, `org_api_delivery_first_attempt_delay_seconds_bucket{${self}}`),
      ),
    ),
    lines(
      'Time of an attempt',
      'How long receivers take, p95.',
      's',
      quantile(0.95, `org_api_delivery_attempt_duration_seconds_bucket{${self}}`),
    ),
    lines(
      'Ledger',
      'Deliveries by what became of them.',
      'short',
      ...(['delivered', 'waiting', 'parked', 'exhausted', 'cancelled'] as const).map((state): [string, string] => [
        `max by (region) (org_api_ledger_${state}{${self}})`,
        `{{region}} ${state}`,
      ]),
    ),
    lines(
      'Webhooks that are not well',
      'failing: only failures lately; suspended: nothing accepted for SUSPEND_AFTER; paused: by a person.',
      'short',
      [`max by (region, state) (org_api_webhooks{${self}})`, '{{region}} {{state}}'],
      [
        `sum by (region) (increase(org_api_webhooks_suspended_total{${self}}[1h]))`,
        '{{region}} suspended within an hour',
      ],
    ),
    lines(
      'Repaired',
      'Deliveries that had lost their workflow, and those of resumed and deleted webhooks.',
      'ops',
      [`sum by (region) (rate(org_api_deliveries_repaired_total{${self}}[$__rate_interval]))`, '{{region}} repaired'],
      [`sum by (region, how) (rate(org_api_deliveries_moved_total{${self}}[$__rate_interval]))`, '{{region}} {{how}}'],
    ),
    lines('Wait in Temporal', 'Age of the oldest task of each queue.', 's', [
      `max by (region, queue, kind) (org_api_queue_backlog_age_seconds{${self}})`,
      '{{region}} {{queue}} {{kind}}',
    ]),
    lines('Tasks in Temporal', 'Tasks that wait for a worker.', 'short', [
      `max by (region, queue, kind) (org_api_queue_backlog_tasks{${self}})`,
      '{{region}} {{queue}} {{kind}}',
    ]),
  ],
};

const platformRow: Row = {
  title: 'Platform',
  panels: [
    lines('Pods', 'Pods whose metrics are read.', 'short', [
      `sum by (region, component) (up{${self}})`,
      '{{region}} {{component}}',
    ]),
    lines('Processor', 'Cores in use by each pod.', 'short', [
      `sum by (region, component, pod) (rate(process_cpu_seconds_total{${self}}[$__rate_interval]))`,
      '{{region}} {{pod}}',
    ]),
    lines('Memory', 'Resident memory of each pod.', 'bytes', [
      `process_resident_memory_bytes{${self}}`,
      '{{region}} {{pod}}',
    ]),
    lines('Event loop', 'Lag of Node’s event loop, p99.', 's', [
      `nodejs_eventloop_lag_p99_seconds{${self}}`,
      '{{region}} {{pod}}',
    ]),
    lines('Database pool of the API', 'Connections by state; waiting are requests without one.', 'short', [
      `sum by (region, state) (org_api_database_connections{${self}})`,
      '{{region}} {{state}}',
    ]),
    lines(
      'Since maintenance, ledger and Temporal',
      'Seconds since each was last done or heard of.',
      's',
      [`time() - max by (region) (org_api_maintenance_last_run_timestamp_seconds{${self}})`, '{{region}} maintenance'],
      [`time() - max by (region) (org_api_ledger_read_timestamp_seconds{${self}})`, '{{region}} ledger'],
      [`time() - min by (region) (org_api_temporal_answered_timestamp_seconds{${self}})`, '{{region}} Temporal'],
    ),
    lines('Failures of maintenance', 'Failed tries by step; the other steps go on.', 'short', [
      `sum by (region, step) (increase(org_api_maintenance_failures_total{${self}}[$__rate_interval]))`,
      '{{region}} {{step}}',
    ]),
    lines('Purged', 'Settled deliveries, and events, older than their retention.', 'ops', [
      `sum by (region, kind) (rate(org_api_retention_purged_total{${self}}[$__rate_interval]))`,
      '{{region}} {{kind}}',
    ]),
    lines('Grants ended by time', 'Access that ended because its end had passed.', 'short', [
      `sum by (region) (increase(org_api_grants_ended_total{${self}}[$__rate_interval]))`,
      '{{region}}',
    ]),
    figure(
      'Workers of the current version',
      'Of Temporal’s deployment; fewer than all only during a rollout.',
      `sum by (region) (org_api_worker_version_is_current{${self}})`,
    ),
    figure(
      'Refused settings',
      'Files of secrets whose new value cannot be used.',
      `sum by (region) (org_api_setting_refused{${self}})`,
      1,
    ),
    figure(
      'Default partition',
      'Bytes of the activity log outside its months.',
      `max by (region) (org_api_activity_default_partition_bytes{${self}})`,
      1,
    ),
    lines('Secrets read again', 'New values that running pods took from their files.', 'short', [
      `sum by (region, setting) (increase(org_api_setting_changes_total{${self}}[$__rate_interval]))`,
      '{{region}} {{setting}}',
    ]),
  ],
};

const pages = 'region=~"$region",operation!~"livez|readyz"';

const consoleRow: Row = {
  title: 'Console',
  panels: [
    lines('Answers of the console', 'Requests of people by status.', 'reqps', [
      `sum by (region, status) (rate(org_console_request_duration_seconds_count{${pages}}[$__rate_interval]))`,
      '{{region}} {{status}}',
    ]),
    lines(
      'Time to a page',
      'p95 of all answers; a sign-in hashes a password.',
      's',
      quantile(0.95, `org_console_request_duration_seconds_bucket{${pages}}`),
    ),
    lines(
      'Refused forms and connections',
      'Forms that were not carried out, by reason, and requests that wait for a connection.',
      'short',
      [
        `sum by (region, code) (increase(org_console_refused_forms_total{${self}}[$__rate_interval]))`,
        '{{region}} {{code}}',
      ],
      [`sum by (region) (org_console_database_connections{${self},state="waiting"})`, '{{region}} waiting'],
    ),
  ],
};

/** All rows, top to bottom. */
export const rows: readonly Row[] = [readsRow, webhooksRow, platformRow, consoleRow];
