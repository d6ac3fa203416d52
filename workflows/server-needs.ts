import type { Connection } from '@temporalio/client';

/** What deliveries need and a Temporal server does not have. */
export interface UnmetNeed {
  /** A sentence without its period. */
  problem: string;
  remedy: string;
  /** Whether deliveries go out without it, at a higher cost. */
  isOptional: boolean;
}

/** The oldest server that deliveries are tested with. */
const oldestVersion = [1, 29] as const;

/** Returns what a server lacks of what workflows/README.md lists, as far as a client can see it. */
export async function findUnmetNeeds(
  { workflowService }: Pick<Connection, 'workflowService'>,
  namespace: string,
): Promise<UnmetNeed[]> {
  const [{ serverVersion }, { namespaceInfo }] = await Promise.all([
    workflowService.getSystemInfo({}),
    workflowService.describeNamespace({ namespace }),
  ]);
  return listUnmetNeeds({
    version: serverVersion ?? '',
    startsEagerly: namespaceInfo?.capabilities?.eagerWorkflowStart === true,
  });
}

/** What a server says of itself. */
export interface ServerFacts {
  version: string;
  startsEagerly: boolean;
}

/** Checks a server by what it reports about itself. */
export function listUnmetNeeds({ version, startsEagerly }: ServerFacts): UnmetNeed[] {
  const needs: UnmetNeed[] = [];
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor, oldestMinor] = oldestVersion;
  if (major < oldestMajor || (major === oldestMajor && minor < oldestMinor))
    needs.push({
      problem: `Temporal ${version || 'of an unknown version'} is older than ${oldestVersion.join('.')}`,
      remedy: `Upgrade it to ${oldestVersion.join('.')} or newer.`,
      isOptional: false,
    });
  if (!startsEagerly)
    needs.push({
      problem: 'Temporal does not start workflows eagerly, so each delivery passes its queue once more',
      remedy: 'Set system.enableEagerWorkflowStart to true, as it is by default.',
      isOptional: true,
    });
  return needs;
}
