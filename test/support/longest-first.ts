import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Slow files, longest first, so that none runs alone at the end while a core is idle. Vitest knows
 * durations only where it ran before; on a new machine it orders by size. A file that is missing
 * here only loses its position. Figures are in test/README.md.
 */
const longest = [
  'operator/region.operator',
  'chaos/nothing-is-lost.system',
  'dev/npm-start.system',
  'signature-libraries/go.system',
  'charts/pod-security.system',
  'console/page-budgets.system',
  'console/webhooks.browser',
  'orgctl/redelivery.system',
  'orgctl/orgctl.system',
  'delivery/local-attempts.system',
  'e2e/timing.system',
  'api/openapi/schemathesis.system',
  'charts/alerts.system',
  'console/first-five-minutes.browser',
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
