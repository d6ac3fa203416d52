/**
 * Import boundaries, checked by dependency-cruiser (`npm run lint`). Types count like values.
 * `docs/architecture.md` says what belongs in each layer.
 */
const production = '^(apps(?!/clients/generate/)|workflows|charts)/';

/** What finds, builds or installs the programs of other languages, browsers and Kubernetes. */
const tools = [
  '^charts/tools[.]ts$',
  '^test/support/(chromium|pgbouncer|python-environment|tools)[.]ts$',
  '^test/(bench/reads/wrk|charts/go-program|cluster/kubernetes/programs|model/spin)[.]ts$',
];

/** A layer of the product, which may import only these others. */
const layer = (name, path, imports) => ({
  name,
  comment: 'domain ← runtime ← workflows ← delivery ← apps',
  severity: 'error',
  from: { path },
  to: { path: production, pathNot: imports },
});

/** Folders of an app, in the order in which they import: none imports one after it. */
const order = (app, ...folders) =>
  folders.slice(0, -1).map((folder, index) => ({
    name: `${app.split('/')[1]}-${folder}-imports-nothing-above-it`,
    comment: `${app}: ${folders.join(' ← ')}`,
    severity: 'error',
    from: { path: `^${app}/${folder}/` },
    to: { path: `^${app}/(${folders.slice(index + 1).join('|')})/` },
  }));

module.exports = {
  forbidden: [
    {
      name: 'no-cycle',
      comment: 'Move what both files need into a third one.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-cycle-between-folders',
      comment: 'The folders of an app import each other in one order.',
      severity: 'error',
      scope: 'folder',
      from: { path: '^apps/(domain|console|operator)' },
      to: { circular: true },
    },
    {
      name: 'domain-folders-do-not-open-the-database',
      comment: 'The files at the root of apps/domain import every folder of it.',
      severity: 'error',
      from: { path: '^apps/domain/[^/]+/' },
      to: { path: '^apps/domain/[^/]+[.]ts$' },
    },
    ...order(
      'apps/domain',
      'contract',
      'encryption',
      'db',
      'access',
      'audit-log',
      'identity',
      'webhooks',
      'clients',
      'keys',
      'members',
      'resealing',
    ),
    ...order('apps/console', 'web', 'components', 'middleware', 'pages'),
    {
      name: 'console-pages-import-no-middleware',
      comment: 'What pages and middleware both need is in web or components.',
      severity: 'error',
      from: { path: '^apps/console/pages/' },
      to: { path: '^apps/console/middleware/' },
    },
    ...order('apps/operator', 'kube', 'controller', 'region', 'webhook-subscription'),
    layer('domain-imports-nothing-above-it', '^apps/domain/', '^apps/domain/'),
    layer('runtime-imports-domain-only', '^apps/runtime/', '^apps/(domain|runtime)/'),
    layer('workflows-import-no-app', '^workflows/', '^(apps/(domain|runtime)|workflows)/'),
    layer('delivery-imports-no-app', '^apps/delivery/', '^(apps/(delivery|domain|runtime)|workflows)/'),
    {
      name: 'apps-do-not-import-each-other',
      comment: 'Except apps/dev, which starts all apps. charts, which packages them, is no app.',
      severity: 'error',
      from: { path: '^apps/([^/]+)/', pathNot: '^apps/(delivery|domain|runtime|dev|clients/generate)/' },
      to: { path: production, pathNot: '^(apps/($1|delivery|domain|runtime)|workflows)/' },
    },
    {
      name: 'client-imports-nothing',
      comment: 'It is published as a package without dependencies, for every runtime that has fetch.',
      severity: 'error',
      from: { path: '^apps/clients/typescript/' },
      to: { pathNot: '^apps/clients/typescript/' },
    },
    {
      name: 'apps-import-no-charts',
      comment: 'charts packages the apps, also apps/dev: what both need is in apps/dev/servers.',
      severity: 'error',
      from: { path: '^(apps|workflows)/' },
      to: { path: '^charts/' },
    },
    {
      name: 'apps-use-deliveries-by-requests',
      comment: 'Except the worker, which runs them.',
      severity: 'error',
      from: { path: '^(apps|charts)/', pathNot: '^apps/(delivery|worker|dev)/' },
      to: { path: '^apps/delivery/', pathNot: '^apps/delivery/(index|requests)\\.ts$' },
    },
    {
      name: 'nothing-imports-a-test',
      comment: 'Tests import the product, never the other way around.',
      severity: 'error',
      from: { path: production },
      to: { path: '^test/' },
    },
    {
      name: 'npm-test-needs-no-tool',
      comment:
        'npm test needs PostgreSQL, Redis and Temporal, and builds or installs nothing else. ' +
        'A test that needs a tool belongs to test:system: rename it to *.system.test.ts.',
      severity: 'error',
      from: { path: '^test/.*[.]test[.]ts$', pathNot: '[.](system|browser|long|operator)[.]test[.]ts$' },
      to: { path: tools, reachable: true },
    },
    {
      name: 'no-process-starts-another',
      comment: 'Except npm start, listen --exec and the tools of charts. Nothing evaluates text as a program.',
      severity: 'error',
      from: { path: production, pathNot: '^(apps/dev|charts)/|^apps/receiver/listen/receiver-command[.]ts$' },
      to: { path: '^(node:)?(child_process|cluster|vm)$' },
    },
    {
      name: 'no-unlisted-package',
      comment: 'List the package in package.json.',
      severity: 'error',
      from: { path: production },
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'unresolvable',
      comment: 'The file or package does not exist.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    parser: 'swc',
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'require', 'default', 'types'],
    },
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '(^|/)assets/|^apps/clients/[^/]+/dist/' },
  },
};
