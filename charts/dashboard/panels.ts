/** An expression, and the legend of its lines in Grafana's terms. */
type Query = readonly [expression: string, legend: string];

/** One panel: its title, its unit in Grafana's terms, and what it shows of the chosen regions. */
export interface Panel {
  title: string;
  /** When an operator needs it. */
  description: string;
  unit: 'reqps' | 'ops' | 's' | 'percentunit' | 'short' | 'bytes' | 'dateTimeFromNow';
  kind: 'timeseries' | 'stat';
  queries: readonly Query[];
  /** The value from which a stat is red. */
  redFrom?: number;
}

export interface Row {
  title: string;
  panels: readonly Panel[];
}

function lines(title: string, description: string, unit: Panel['unit'], queries: readonly Query[]): Panel {
  return { title, description, unit, kind: 'timeseries', queries };
}

function figure(title: string, description: string, query: Query, redFrom?: number): Panel {
  const red = redFrom === undefined ? {} : { redFrom };
  return { title, description, unit: 'short', kind: 'stat', queries: [query], ...red };
}

/** Returns a metric of the chosen regions. */
const own = (metric: string, ...labels: string[]) => `${metric}{${['region=~"$region"', ...labels].join(',')}}`;

/** Returns a metric of requests, without those of Kubernetes. */
const served = (metric: string, ...labels: string[]) => own(metric, 'operation!~"livez|readyz"', ...labels);

const rate = (series: string, over = '$__rate_interval') => `rate(${series}[${over}])`;
const increase = (series: string, over = '$__rate_interval') => `increase(${series}[${over}])`;

/** Aggregates by the labels that the legend shows. */
function by(aggregate: string, legend: string, expression: string): Query {
  const labels = [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label);
  return [`${aggregate} by (${labels.join(', ')}) (${expression})`, legend];
}
const sum = (legend: string, expression: string) => by('sum', legend, expression);
const max = (legend: string, expression: string) => by('max', legend, expression);

/** Returns the seconds since the time that a metric holds: the newest or oldest of a region. */
const since = (aggregate: 'max' | 'min', what: string, metric: string): Query => [
  `time() - ${aggregate} by (region) (${own(metric)})`,
  `{{region}} ${what}`,
];

const quantiles = (buckets: string, shares: readonly number[] = [0.5, 0.95, 0.99]): Query[] =>
  shares.map((share) => [
    `histogram_quantile(${share}, sum by (region, le) (${rate(buckets)}))`,
    `{{region}} p${share * 100}`,
  ]);

const reads = 'org_api_request_duration_seconds_count';
const attempts = 'org_api_delivery_attempt_duration_seconds';

const readsRow: Row = {
  title: 'Reads',
  panels: [
    lines('Responses', 'Reads a second by operation.', 'reqps', [sum('{{region}} {{operation}}', rate(served(reads)))]),
    lines('Error responses', 'Responses that are no 2xx or 304, by status.', 'reqps', [
      sum('{{region}} {{status}}', rate(served(reads, 'status!~"2..|304"'))),
    ]),
    lines('Share of 5xx', 'The promise is 0.1 % over 30 days.', 'percentunit', [
      [
        `(sum by (region) (${rate(served(reads, 'status=~"5.."'), '5m')}) or sum by (region) (${own('up')}) * 0)` +
          ` / sum by (region) (${rate(served(reads), '5m')})`,
        '{{region}}',
      ],
    ]),
    lines(
      'Time to answer',
      'Of good responses. The promise is 250 ms for 99 %.',
      's',
      quantiles(served('org_api_request_duration_seconds_bucket', 'status=~"2..|304"')),
    ),
    lines('Limiter', 'Error responses 429, and pods that limit without Redis.', 'short', [
      sum('{{region}} 429 a second', rate(served(reads, 'status="429"'))),
      sum('{{region}} pods without Redis', own('org_api_limiter_without_redis')),
      sum('{{region}} switches to {{mode}}', increase(own('org_api_limiter_switches_total'))),
    ]),
    lines('Failed authentications', 'Error responses 401.', 'reqps', [
      sum('{{region}}', rate(own('org_api_failed_authentications_total'))),
    ]),
    lines(
      'Audit log',
      'Entries that share one insert, and entries that were rejected: each of those reads got 500 or 503.',
      'short',
      [
        [
          `sum by (region) (${rate(own('org_api_audit_entries_per_insert_sum'))})` +
            ` / sum by (region) (${rate(own('org_api_audit_entries_per_insert_count'))})`,
          '{{region}} entries an insert',
        ],
        sum('{{region}} rejected', increase(own('org_api_audit_entries_rejected_total'))),
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
      [
        `max by (region) (${own('org_api_ledger_missing')}) + max by (region) (${own('org_api_ledger_surplus')})`,
        '{{region}}',
      ],
      1,
    ),
    figure(
      'Stuck',
      'Overdue deliveries that wait neither for their own receiver nor for others of their organization.',
      max('{{region}}', own('org_api_ledger_stuck')),
      1,
    ),
    figure(
      'Overdue',
      'Deliveries of active webhooks due for over a minute, also while their receiver hangs or fails.',
      max('{{region}}', own('org_api_ledger_overdue')),
    ),
    figure('Waiting', 'Deliveries that wait for an attempt.', max('{{region}}', own('org_api_ledger_waiting'))),
    figure('Held', 'Deliveries of paused and suspended webhooks.', max('{{region}}', own('org_api_ledger_held'))),
    lines('Events', 'Deliveries that events made, and those that workers took up, a second.', 'ops', [
      max('{{region}} made', `deriv(${own('org_api_ledger_required')}[5m])`),
      sum('{{region}} claimed', rate(own('org_api_deliveries_claimed_total'))),
    ]),
    lines('Attempts by outcome', 'internal_error could not be sent and does not count.', 'ops', [
      sum('{{region}} {{outcome}}', rate(own(`${attempts}_count`))),
    ]),
    lines('Failed attempts by cause', 'The cause is a code that orgctl delivery show explains.', 'ops', [
      sum('{{region}} {{cause}}', rate(own(`${attempts}_count`, 'outcome!="delivered"'))),
    ]),
    lines(
      'Time to the first attempt',
      'From the event to its first post.',
      's',
      quantiles(own('org_api_delivery_first_attempt_delay_seconds_bucket')),
    ),
    lines('Time of an attempt', 'How long receivers take, p95.', 's', quantiles(own(`${attempts}_bucket`), [0.95])),
    lines(
      'Ledger',
      'Deliveries by their state.',
      'short',
      ['delivered', 'waiting', 'held', 'exhausted', 'cancelled'].map((state) =>
        max(`{{region}} ${state}`, own(`org_api_ledger_${state}`)),
      ),
    ),
    lines(
      'Webhooks that are not well',
      'failing: only failures lately; suspended: nothing accepted for SUSPEND_AFTER; paused: by a person.',
      'short',
      [
        max('{{region}} {{state}}', own('org_api_webhooks')),
        sum('{{region}} suspended within an hour', increase(own('org_api_webhooks_suspended_total'), '1h')),
      ],
    ),
    lines(
      'Repaired',
      'Deliveries whose slot or run was past its time, and those of paused, suspended and deleted webhooks.',
      'ops',
      [
        sum('{{region}} {{kind}}', rate(own('org_api_deliveries_repaired_total'))),
        sum('{{region}} {{how}}', rate(own('org_api_deliveries_moved_total'))),
      ],
    ),
    lines('Wait in Temporal', 'Age of the oldest task of each queue.', 's', [
      max('{{region}} {{kind}}', own('org_api_queue_backlog_age_seconds')),
    ]),
    lines('Tasks in Temporal', 'Tasks that wait for a worker.', 'short', [
      max('{{region}} {{kind}}', own('org_api_queue_backlog_tasks')),
    ]),
  ],
};

const platformRow: Row = {
  title: 'Platform',
  panels: [
    lines('Pods', 'Pods whose metrics are read.', 'short', [sum('{{region}} {{component}}', own('up'))]),
    lines('Processor', 'Cores in use by each pod.', 'short', [
      [`sum by (region, component, pod) (${rate(own('process_cpu_seconds_total'))})`, '{{region}} {{pod}}'],
    ]),
    lines('Memory', 'Resident memory of each pod.', 'bytes', [
      [own('process_resident_memory_bytes'), '{{region}} {{pod}}'],
    ]),
    lines('Event loop', 'Lag of Node’s event loop, p99.', 's', [
      [own('nodejs_eventloop_lag_p99_seconds'), '{{region}} {{pod}}'],
    ]),
    lines('Database pool of the API', 'Connections by state; waiting are requests without one.', 'short', [
      sum('{{region}} {{state}}', own('org_api_database_connections')),
    ]),
    lines('Since maintenance, ledger and Temporal', 'Seconds since each was last done or heard of.', 's', [
      since('max', 'maintenance', 'org_api_maintenance_last_run_timestamp_seconds'),
      since('max', 'ledger', 'org_api_ledger_read_timestamp_seconds'),
      since('min', 'Temporal', 'org_api_temporal_answered_timestamp_seconds'),
    ]),
    lines('Failures of maintenance', 'Failed tries by step; the other steps continue.', 'short', [
      sum('{{region}} {{step}}', increase(own('org_api_maintenance_failures_total'))),
    ]),
    lines('Purged', 'Settled deliveries, and events, older than their retention.', 'ops', [
      sum('{{region}} {{kind}}', rate(own('org_api_retention_purged_total'))),
    ]),
    lines('Grants ended by time', 'Access that ended because its end had passed.', 'short', [
      sum('{{region}}', increase(own('org_api_grants_ended_total'))),
    ]),
    figure(
      'Stopped workers',
      'They deliver nothing: an internal error occurred before they were ready.',
      sum('{{region}}', own('org_api_worker_is_stopped')),
    ),
    figure(
      'Rejected settings',
      'Files of secrets whose new value cannot be used.',
      sum('{{region}}', own('org_api_setting_rejected')),
      1,
    ),
    figure(
      'Default partition',
      'Bytes of the audit log outside its months.',
      max('{{region}}', own('org_api_audit_log_default_partition_bytes')),
      1,
    ),
    figure(
      'Unlinked audit entries',
      'Age (s) of the oldest entry of the audit log that is not in its hash chain.',
      max('{{region}}', own('org_api_audit_log_unlinked_age_seconds')),
      600,
    ),
    figure(
      'Limit of erasures used',
      'Families that the platform erased in 24 hours, as a share of its limit.',
      max('{{region}}', own('org_api_erasure_limit_used_ratio')),
      0.5,
    ),
    lines('Mails', 'Tries to send a mail, by how they ended.', 'short', [
      sum('{{region}} {{outcome}}', increase(own('org_api_mail_tries_total'))),
      sum('{{region}} not configured', increase(own('org_api_mails_dropped_total'))),
    ]),
    lines('Secrets read again', 'New values that running pods took from their files.', 'short', [
      sum('{{region}} {{setting}}', increase(own('org_api_setting_changes_total'))),
    ]),
  ],
};

const consoleRow: Row = {
  title: 'Console',
  panels: [
    lines('Responses of the console', 'Requests of people by status.', 'reqps', [
      sum('{{region}} {{status}}', rate(served('org_console_request_duration_seconds_count'))),
    ]),
    lines(
      'Time to a page',
      'p95 of all responses; a sign-in hashes a password.',
      's',
      quantiles(served('org_console_request_duration_seconds_bucket'), [0.95]),
    ),
    lines(
      'Rejected forms and connections',
      'Forms that were not carried out, by reason, and requests that wait for a connection.',
      'short',
      [
        sum('{{region}} {{code}}', increase(own('org_console_rejected_forms_total'))),
        sum('{{region}} waiting', own('org_console_database_connections', 'state="waiting"')),
      ],
    ),
  ],
};

/** All rows, top to bottom. */
export const rows: readonly Row[] = [readsRow, webhooksRow, platformRow, consoleRow];
