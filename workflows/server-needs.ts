import { type Connection, isGrpcServiceError, ServiceError } from '@temporalio/client';
import { deliveryAttributes, keywordType } from './deliver-event/search-attributes.ts';
import { deliverQueue, deliverSlowQueue } from './deliver-event/types.ts';

/** The part of both kinds of connection that is used here. */
type Services = Pick<Connection, 'workflowService' | 'operatorService'>;

/** What deliveries need and a Temporal server does not have. */
export interface UnmetNeed {
  /** A sentence without its period. */
  problem: string;
  remedy: string;
  /** Whether deliveries go out without it, later or less evenly. */
  isOptional: boolean;
}

/** The oldest server with priority and fairness of task queues. */
const oldestVersion = [1, 29] as const;

/**
 * Returns the names of search attributes that a namespace lacks, and those that it has with another
 * type.
 */
export async function compareSearchAttributes(
  { operatorService }: Pick<Services, 'operatorService'>,
  namespace: string,
): Promise<{ missing: string[]; conflicting: string[] }> {
  const { customAttributes: known } = await operatorService.listSearchAttributes({ namespace });
  const names = deliveryAttributes.map(({ name }) => name);
  const missing = names.filter((name) => known?.[name] === undefined);
  return { missing, conflicting: names.filter((name) => !missing.includes(name) && known?.[name] !== keywordType) };
}

/**
 * Returns what a server lacks of what workflows/README.md lists, as far as a client can see it:
 * fairness of queues shows only in its effect.
 */
export async function findUnmetNeeds({ workflowService }: Services, namespace: string): Promise<UnmetNeed[]> {
  const partitionsOf = async (name: string) => {
    const { workflowTaskQueuePartitions: workflow, activityTaskQueuePartitions: activity } =
      await workflowService.listTaskQueuePartitions({ namespace, taskQueue: { name } });
    return { name, count: Math.max(workflow?.length ?? 0, activity?.length ?? 0) };
  };
  const [{ serverVersion }, { namespaceInfo }, ...queues] = await Promise.all([
    workflowService.getSystemInfo({}),
    workflowService.describeNamespace({ namespace }),
    ...[deliverQueue, deliverSlowQueue].map((name) => partitionsOf(name).catch(unlessRefused({ name, count: 1 }))),
  ]);
  return judgeServer({
    version: serverVersion ?? '',
    startsEagerly: namespaceInfo?.capabilities?.eagerWorkflowStart === true,
    queues,
  });
}

/** What a server says of itself. */
export interface ServerFacts {
  version: string;
  startsEagerly: boolean;
  queues: readonly { name: string; count: number }[];
}

/** Judges a server by what it says of itself. */
export function judgeServer({ version, startsEagerly, queues }: ServerFacts): UnmetNeed[] {
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
  const divided = queues.filter(({ count }) => count > 1).map(({ name }) => name);
  if (divided.length > 0)
    needs.push({
      problem: `organizations take turns only within a partition, and Temporal has several of ${divided.join(', ')}`,
      remedy: 'Set matching.numTaskqueueWritePartitions, and later matching.numTaskqueueReadPartitions, to 1 for them.',
      isOptional: true,
    });
  return needs;
}

/** gRPC codes of a method that a service does not offer to this client: Temporal Cloud's. */
const notOffered: readonly unknown[] = [7 /* PERMISSION_DENIED */, 12 /* UNIMPLEMENTED */];

const unlessRefused =
  <T>(otherwise: T) =>
  (error: unknown): T => {
    const cause = error instanceof ServiceError ? error.cause : error;
    if (isGrpcServiceError(cause) && notOffered.includes(cause.code)) return otherwise;
    throw error;
  };
