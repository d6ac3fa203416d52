/**
 * Import boundaries, checked by dependency-cruiser (`npm run lint`). Types count like values.
 * `docs/architecture.md` says what belongs in each layer.
 */
const production = '^(apps|workflows|charts)/';

/** A layer of the product, which may import only these others. */
const layer = (name, path, imports) => ({
  name,
  comment: 'domain ← runtime ← workflows ← delivery ← apps',
  severity: 'error',
  from: { path },
  to: { path: production, pathNot: imports },
});

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
      name: 'no-cycle-between-domain-folders',
      comment: 'The folders of apps/domain import each other in one order.',
      severity: 'error',
      scope: 'folder',
      from: { path: '^apps/domain' },
      to: { circular: true },
    },
    layer('domain-imports-nothing-above-it', '^apps/domain/', '^apps/domain/'),
    layer('runtime-imports-domain-only', '^apps/runtime/', '^apps/(domain|runtime)/'),
    layer('workflows-import-no-app', '^workflows/', '^(apps/(domain|runtime)|workflows)/'),
    layer('delivery-imports-no-app', '^apps/delivery/', '^(apps/(delivery|domain|runtime)|workflows)/'),
    {
      name: 'apps-do-not-import-each-other',
      comment: 'Except apps/dev, which starts all apps. charts, which packages them, is no app.',
      severity: 'error',
      from: { path: '^apps/([^/]+)/', pathNot: '^apps/(delivery|domain|runtime|dev)/' },
      to: { path: production, pathNot: '^(apps/($1|delivery|domain|runtime)|workflows)/' },
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
      name: 'no-process-starts-another',
      comment: 'Except npm start and the tools of charts. Nothing evaluates text as a program.',
      severity: 'error',
      from: { path: production, pathNot: '^(apps/dev|charts)/' },
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
    exclude: { path: '(^|/)(pictures|assets)/' },
  },
};
