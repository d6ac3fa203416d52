import type { Panel, Row } from './panels.ts';

/** Grafana's grid is 24 wide; figures are a quarter of a graph. */
const sizes = { timeseries: { w: 8, h: 8 }, stat: { w: 6, h: 4 } } as const;
const gridWidth = 24;
const datasource = { type: 'prometheus', uid: '$datasource' };

/** Returns the dashboard for Grafana 10 or newer; the same rows always give the same JSON. */
export function buildDashboard(rows: readonly Row[]): object {
  return {
    uid: 'org-api',
    title: 'org-api',
    tags: ['org-api'],
    schemaVersion: 39,
    editable: false,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    timezone: 'utc',
    templating: { list: [datasourceVariable, regionVariable] },
    panels: buildPanels(rows),
  };
}

const datasourceVariable = { name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus' };
const regionVariable = {
  name: 'region',
  label: 'Region',
  type: 'query',
  datasource,
  refresh: 2,
  includeAll: true,
  multi: true,
  sort: 1,
  query: { query: 'label_values(org_api_ledger_difference, region)', refId: 'region' },
  current: { text: 'All', value: '$__all' },
};

function buildPanels(rows: readonly Row[]): object[] {
  const panels: object[] = [];
  let y = 0;
  for (const row of rows) {
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title: row.title,
      collapsed: false,
      gridPos: { x: 0, y, w: gridWidth, h: 1 },
      panels: [],
    });
    y += 1;
    let x = 0;
    let height = 0;
    for (const panel of row.panels) {
      const { w, h } = sizes[panel.kind];
      if (x + w > gridWidth || (height > 0 && height !== h)) {
        x = 0;
        y += height;
      }
      panels.push(buildPanel(panel, panels.length + 1, { x, y, w, h }));
      x += w;
      height = h;
    }
    y += height;
  }
  return panels;
}

function buildPanel({ kind, title, description, unit, queries, redFrom }: Panel, id: number, gridPos: object): object {
  const steps = [{ color: 'green', value: null }, ...(redFrom === undefined ? [] : [{ color: 'red', value: redFrom }])];
  return {
    id,
    type: kind,
    title,
    description,
    gridPos,
    datasource,
    fieldConfig: {
      defaults: { unit, min: kind === 'timeseries' ? 0 : undefined, thresholds: { mode: 'absolute', steps } },
      overrides: [],
    },
    options:
      kind === 'stat'
        ? { reduceOptions: { calcs: ['lastNotNull'] }, colorMode: 'background', graphMode: 'none' }
        : { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
    targets: queries.map(([expr, legendFormat], index) => ({
      refId: String.fromCharCode(65 + index),
      datasource,
      expr,
      legendFormat,
    })),
  };
}
