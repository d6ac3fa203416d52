import { writeFileSync } from 'node:fs';
import { buildDashboard } from './dashboard.ts';
import { rows } from './panels.ts';

/**
 * `node charts/dashboard/main.ts`: writes charts/org-api/dashboards/org-api.json. A test fails
 * when it differs.
 */
writeFileSync(
  new URL('../org-api/dashboards/org-api.json', import.meta.url),
  `${JSON.stringify(buildDashboard(rows), null, 2)}\n`,
);
