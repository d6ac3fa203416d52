/** Runbooks: one for each alert, with commands, expressions and links that exist. */
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { brokenLinks, listBlocks, listCommands, readPage, readRunbooks } from '#test/documents.ts';
import { chart, pick, render } from '#test/render-charts.ts';
import { findProblem } from './commands.ts';
import { findProblems, listAlerts, renderAlerts, renderOperator, watched } from './promtool.ts';

const manifests = render({ values: watched });
const operator = renderOperator();
const charts = [
  { chart: 'org-api', runbooks: readRunbooks(), alerts: renderAlerts(), manifests },
  {
    chart: 'org-api-operator',
    runbooks: readRunbooks('org-api-operator'),
    alerts: listAlerts(pick(operator, 'PrometheusRule').spec),
    manifests: operator,
  },
];
const headings = ['What it means', 'See it', 'Likely causes', 'What to do', 'When it ends'];

it.each(charts)('each alert of $chart has a runbook, and each runbook an alert', ({ runbooks, alerts }) => {
  expect([...runbooks.keys()].sort()).toEqual([...new Set(alerts.map(({ alert }) => alert))].sort());
});

const pages = charts.flatMap(({ runbooks, ...of }) => [...runbooks].map(([alert, page]) => ({ alert, page, ...of })));

describe.each(pages)('$alert', ({ alert, page, alerts, manifests }) => {
  it('explains meaning, diagnosis, cause, action, end and severity', () => {
    expect(page.text.split('\n')[0]).toBe(`# ${alert}`);
    expect([...page.text.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading)).toEqual(headings);
    for (const section of page.text.split(/^## .*$/m).slice(1)) expect(section.trim().length).toBeGreaterThan(20);
    const [, severity = ''] = /^Severity: (.*)$/m.exec(page.text) ?? [];
    for (const one of alerts.filter((rule) => rule.alert === alert)) expect(severity).toContain(one.labels.severity);
  });

  it('names commands, objects and links that exist', () => {
    const commands = listCommands(page);
    expect(commands.length + listBlocks(page, 'sql').length).toBeGreaterThan(0);
    expect(commands.map((command) => findProblem(command, manifests)).filter(Boolean)).toEqual([]);
    expect(brokenLinks(page)).toEqual([]);
  });

  it('has expressions that are valid for Prometheus', () => {
    const expressions = listBlocks(page, 'promql').flatMap((block) => block.trim().split('\n'));
    expect(expressions.length).toBeGreaterThan(0);
    expect(findProblems(expressions)).toBe('');
  });
});

it('the check finds a command that does not exist', () => {
  for (const command of [
    'orgctl webhook unpark --webhook W',
    'orgctl webhook resume',
    'orgctl key revoke --id K',
    'helm undo us',
    'helm rollback us --force-all',
    'helm rollback us -n $NS --wait',
    'helm test us -n $NS --logs',
    'helm upgrade us charts/org-api -n $NS --reuse-values --wait',
    'helm upgrade us charts/org-api -n $NS --wait',
    'helm upgrade us charts/org-api -n $NS --values us-values.yaml --set migrations.rerun=1',
    'kubectl -n $NS forget pods',
    'kubectl -n $NS logs deployment/$NAME-relay',
    'kubectl -n $NS wait --for=condition=Ready pod/orgctl',
    'kubectl -n $NS exec deploy/valkey-us -- valkey-cli -a "$OLD" ping',
    'docker ps',
  ])
    expect(findProblem(command, manifests), command).not.toBeNull();
});

it.each(charts)('the list of runbooks of $chart has links and commands that exist', ({ chart: name }) => {
  const page = readPage(path.join(chart, '..', name, 'runbooks/README.md'));
  expect(brokenLinks(page)).toEqual([]);
  expect(
    listCommands(page)
      .map((command) => findProblem(command, manifests))
      .filter(Boolean),
  ).toEqual([]);
});
