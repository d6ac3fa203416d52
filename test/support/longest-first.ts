import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Slow files, longest first, so that none runs alone at the end while a core is idle. Vitest knows
 * durations only where it ran before; on a new machine it orders by size. A file that is missing
 * here only loses its position. Files that wait most of their time come before one that compares
 * durations, and run beside it. Figures are in test/README.md.
 */
const longest = [
  'operator/rotate-secrets.operator',
  'operator/region.operator',
  'operator/remove-a-region.operator',
  'chaos/nothing-is-lost.system',
  'e2e/recovery.system',
  'console/repair.browser',
  'delivery/local-attempts.system',
  'api/bounds/memory.system',
  'dev/npm-start.system',
  'console/contrast.browser',
  'orgctl/signature-check.system',
  'e2e/temporal-tls.system',
  'e2e/temporal-store-lost.system',
  'operations/restore-a-backup.system',
  'e2e/timing.system',
  'console/every-page.system',
  'charts/alerts.system',
  'orgctl/redelivery.system',
  'console/page-budgets.system',
  'console/hostile-text.system',
  'delivery/trial.system',
  'model/delivery.system',
  'console/webhooks.browser',
  'api/bounds/large-responses.system',
  'runtime/commands.system',
  'api/openapi/schemathesis.system',
  'delivery/attempt',
  'api/limiter/away',
  'domain/identity/sign-in',
  'api/bounds/waits',
];

const rankOf = ({ moduleId }: TestSpecification): number => {
  const rank = longest.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
  return rank < 0 ? longest.length : rank;
};

/** Vitest's order, except for the slowest files. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.sort((one, other) => rankOf(one) - rankOf(other));
  }
}
