/**
 * Monitoring of a release: Prometheus' targets, Grafana's dashboards, and that every named metric
 * exists in the running apps.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { listBlocks, readGuide, readRunbooks } from '#test/documents.ts';
import { chart, findRenderError, ofKind, pick, regions, render, renderText } from '#test/render-charts.ts';
import { setup } from '#test/setup.ts';
import { startTestWorker } from '#test/worker.ts';
import { buildDashboard } from '../../charts/dashboard/dashboard.ts';
import { rows } from '../../charts/dashboard/panels.ts';
import { getTool } from '../../charts/tools.ts';
import { setupConsole } from '../console/setup.ts';
import { findProblems, listMetrics, renderOperator, renderRules, watched } from './promtool.ts';
import { getSchemas } from './schemas.ts';

const kinds = ['ServiceMonitor', 'PrometheusRule', 'ConfigMap'];
const file = path.join(chart, 'dashboards/org-api.json');

describe('monitoring', () => {
  it('is off by default, and does not look for CRDs in the cluster', () => {
    for (const kind of kinds) expect(ofKind(render(), kind)).toEqual([]);
    for (const kind of kinds) expect(ofKind(render({ values: watched }), kind)).toHaveLength(1);
    for (const name of ['servicemonitor', 'prometheusrule', 'grafana-dashboard'])
      expect(readFileSync(path.join(chart, `templates/${name}.yaml`), 'utf8')).not.toMatch(/lookup|Capabilities/);
  });

  it.each(['serviceMonitor', 'rules', 'dashboard'])('has a switch for its %s', (part) => {
    const values = { monitoring: { ...watched.monitoring, [part]: { enabled: false } } };
    const rules = part === 'rules' ? {} : { rules: watched.monitoring.rules };
    expect(
      kinds.filter(
        (kind) => ofKind(render({ values: { monitoring: { ...values.monitoring, ...rules } } }), kind).length > 0,
      ),
    ).toHaveLength(2);
  });

  it('requires the URL of the runbooks', () => {
    expect(findRenderError({ monitoring: { enabled: true } })).toMatch(
      /monitoring\.rules\.runbookBaseUrl is empty: give the URL/,
    );
  });

  it.each(regions)('reads the metrics of every pod of %s, and of no other release', (region) => {
    const manifests = render({ region, values: watched });
    const { spec } = pick(manifests, 'ServiceMonitor');
    const services = ofKind(manifests, 'Service').filter(({ metadata }) =>
      Object.entries(spec.selector.matchLabels).every(([key, value]) => metadata.labels[key] === value),
    );
    expect(services.map(({ metadata }) => metadata.labels['app.kubernetes.io/component']).sort()).toEqual([
      'api',
      'console',
      'worker',
    ]);
    for (const service of services) expect(service.spec.ports[0].name).toBe(spec.endpoints[0].port);
    expect(spec.selector.matchLabels['app.kubernetes.io/instance']).toBe(region);
    expect(spec.endpoints[0].relabelings).toContainEqual({
      targetLabel: 'installation',
      replacement: `org-api-${region}/${region}-org-api`,
    });
  });

  it.each(['org-api', 'org-api-operator'])('names the cluster in what it adds to the metrics of %s', (part) => {
    const monitoring = { ...watched.monitoring, cluster: 'arn:aws:eks:eu-1:1:cluster/east' };
    const manifests = part === 'org-api' ? render({ values: { monitoring } }) : renderOperator({ monitoring });
    expect(pick(manifests, 'ServiceMonitor').spec.endpoints[0].relabelings).toContainEqual({
      targetLabel: 'installation',
      replacement: expect.stringMatching(/^arn:aws:eks:eu-1:1:cluster\/east\/org-api-us\//),
    });
  });

  it('leaves the timeout of a scrape to Prometheus, which never lets it exceed the interval', () => {
    const values = { monitoring: { ...watched.monitoring, serviceMonitor: { interval: '5s' } } };
    const [endpoint] = pick(render({ values }), 'ServiceMonitor').spec.endpoints;
    expect(endpoint.interval).toBe('5s');
    expect(endpoint).not.toHaveProperty('scrapeTimeout');
  });

  it('carries the labels that Prometheus and Grafana select by', () => {
    const labels = { release: 'prometheus' };
    const values = {
      monitoring: {
        ...watched.monitoring,
        serviceMonitor: { labels },
        rules: { ...watched.monitoring.rules, labels },
        dashboard: { annotations: { grafana_folder: 'org-api' } },
      },
    };
    const manifests = render({ values });
    for (const kind of ['ServiceMonitor', 'PrometheusRule'])
      expect(pick(manifests, kind).metadata.labels).toMatchObject({ ...labels, 'app.kubernetes.io/instance': 'us' });
    const { metadata } = pick(manifests, 'ConfigMap');
    expect(metadata.labels.grafana_dashboard).toBe('1');
    expect(metadata.annotations).toEqual({ grafana_folder: 'org-api' });
  });

  it('is valid for the operator’s CRDs, strictly', { timeout: 600_000 }, async () => {
    const options = [
      '-strict',
      '-summary',
      '-schema-location',
      `${await getSchemas()}/{{.ResourceKind}}{{.KindSuffix}}.json`,
    ];
    const program = await getTool('kubeconform');
    const check = (text: string) => spawnSync(program, options, { input: text, encoding: 'utf8' });
    const text = renderText({ values: watched });
    expect(check(text).stdout).toMatch(/Invalid: 0, Errors: 0, Skipped: 0/);
    expect(check(text.replace('interval:', 'intervals:')).status).toBe(1);
  });
});

describe('the dashboard', () => {
  const dashboard = JSON.parse(readFileSync(file, 'utf8'));
  const panels = dashboard.panels.filter(({ type }: { type: string }) => type !== 'row');

  it('is generated from its panels; node charts/dashboard/main.ts writes it', () => {
    expect(dashboard).toEqual(JSON.parse(JSON.stringify(buildDashboard(rows))));
    const { data } = pick(render({ values: watched }), 'ConfigMap');
    const shown = JSON.parse(data['org-api-us-us-org-api.json']);
    expect({ ...shown, uid: dashboard.uid, title: dashboard.title }).toEqual(dashboard);
  });

  it('has a file, a uid and a title for each release, so that one Grafana can show several', () => {
    const releases = [{ region: 'us' }, { region: 'ca' }, { release: 'blue', namespace: 'org-api-us' }] as const;
    const all = releases.map((one) => Object.entries(pick(render({ ...one, values: watched }), 'ConfigMap').data));
    const files = all.map(([entry]) => entry?.[0]);
    const shown = all.map(([entry]) => JSON.parse(String(entry?.[1])));
    for (const names of [files, shown.map(({ uid }) => uid), shown.map(({ title }) => title)])
      expect(new Set(names).size).toBe(3);
    for (const { uid } of shown) expect(uid).toMatch(/^[\w-]{1,40}$/); // Grafana's limit
    expect(shown[0].title).toBe('org-api org-api-us/us-org-api');
  });

  it('has a row for reads, webhooks, platform and console, with explained panels that do not overlap', () => {
    expect(rows.map(({ title }) => title)).toEqual(['Reads', 'Webhooks', 'Platform', 'Console']);
    const cells = dashboard.panels.flatMap(
      ({ gridPos: { x, y, w, h } }: { gridPos: Record<'x' | 'y' | 'w' | 'h', number> }) =>
        Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    for (const { description } of panels) expect(description.length).toBeGreaterThan(5);
  });

  it('follows the selected regions in every expression, each of which is valid for Prometheus', () => {
    const expressions: string[] = panels.flatMap(({ targets }: { targets: { expr: string }[] }) =>
      targets.map(({ expr }) => expr),
    );
    expect(expressions.length).toBeGreaterThan(40);
    for (const expression of expressions)
      for (const [selector = ''] of expression.matchAll(/\{[^}]*\}/g)) expect(selector).toContain('region=~"$region"');
    expect(findProblems(expressions.map((expression) => expression.replaceAll('$__rate_interval', '5m')))).toBe('');
  });
});

describe('every metric', () => {
  /** Metrics of Prometheus and of kube-state-metrics. */
  const ofOthers = /^(up|ALERTS|kube_\w+)$/;

  it('in alerts, dashboard, runbooks and guide is one that the running API, worker or console exports', async () => {
    const { api, database, make } = await setup();
    const worker = await startTestWorker(database);
    const { console } = await setupConsole();
    await fetch(`${console.url}/livez`);
    const creator = await make.member();
    const { key } = await make.apiKey({ creator });
    await api.get(`/v1/orgs/${creator.orgId}`, { key });
    const texts = await Promise.all(
      [api.metricsUrl, worker.metricsUrl, console.metricsUrl].map(async (url) =>
        (await fetch(`${url}/metrics`)).text(),
      ),
    );
    const shown = new Set(
      texts.flatMap((text) =>
        [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].flatMap(([, name = '', type]) =>
          type === 'histogram' ? ['_bucket', '_count', '_sum'].map((end) => name + end) : [name],
        ),
      ),
    );
    const rules = renderRules().groups.flatMap((group) => group.rules.map(({ expr }) => expr));
    const pages = [...readRunbooks().values(), ...readGuide()];
    const named = [
      ...rules,
      ...rows.flatMap((row) => row.panels.flatMap((panel) => panel.queries.map(([expression]) => expression))),
      ...pages.flatMap((page) => listBlocks(page, 'promql').flatMap((block) => block.trim().split('\n'))),
    ].flatMap(listMetrics);
    expect(new Set(named).size).toBeGreaterThan(30);
    expect([...new Set(named)].filter((name) => !shown.has(name) && !ofOthers.test(name))).toEqual([]);
    for (const name of ['org_api_request_duration_seconds_bucket', 'kube_job_status_failed', 'up'])
      expect(named).toContain(name);
  });
});
