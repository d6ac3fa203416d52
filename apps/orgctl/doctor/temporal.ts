import { Connection } from '@temporalio/client';
import type { TemporalServer } from '#runtime/settings/temporal.ts';
import {
  connectionOptions,
  describeRejection,
  describeUnavailable,
  isNotFound,
  isRejection,
} from '#workflows/connection.ts';
import { findUnmetNeeds } from '#workflows/server-needs.ts';
import { checkPem, checkServer } from './certificates.ts';
import { createFindings, type Finding } from './finding.ts';

const { ok, warning, failed } = createFindings('temporal');
const timeoutMs = 5_000;
const dayS = 86_400;

/** Checks that Temporal answers for the namespace, its version, settings, rights and certificates. */
export async function checkTemporal(server: TemporalServer): Promise<Finding[]> {
  const connection = Connection.lazy({ ...connectionOptions(server), connectTimeout: timeoutMs });
  const within = <T>(work: () => Promise<T>) => connection.withDeadline(Date.now() + timeoutMs, work);
  try {
    await within(() => connection.ensureConnected());
    return [...(await within(() => checkNamespace(connection, server))), ...(await checkCertificates(server))];
  } catch (error) {
    return [explain(error, server), ...(await checkCertificates(server))];
  } finally {
    await connection.close();
  }
}

async function checkNamespace(connection: Connection, { namespace }: TemporalServer): Promise<Finding[]> {
  const { config } = await connection.workflowService.describeNamespace({ namespace });
  await tryWrite(connection, namespace);
  const needs = await findUnmetNeeds(connection, namespace);
  const retentionS = Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0);
  return [
    ok(`Temporal has the namespace ${namespace} and lets this login write in it`),
    ...needs.map(({ problem, remedy, isOptional }) => (isOptional ? warning : failed)(problem, remedy)),
    ...(needs.length === 0 ? [ok('Temporal is of a supported version, with the settings that deliveries need')] : []),
    retentionS >= dayS
      ? ok('Temporal keeps ended workflows for a day or longer')
      : warning('Temporal keeps ended workflows for less than a day', 'Set the retention of the namespace to 3 days.'),
  ];
}

/**
 * Makes a call that changes something, as workers do, for a workflow that never exists.
 *
 * @throws the error of gRPC when the login may only read.
 */
async function tryWrite({ workflowService }: Connection, namespace: string): Promise<void> {
  const workflowExecution = { workflowId: 'org-api-doctor' };
  try {
    await workflowService.terminateWorkflowExecution({ namespace, workflowExecution });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

function explain(error: unknown, server: TemporalServer): Finding {
  const { namespace } = server;
  if (isNotFound(error))
    return failed(
      `Temporal has no namespace ${namespace}`,
      `Run temporal operator namespace create --namespace ${namespace} --retention 3d, or correct TEMPORAL_NAMESPACE.`,
    );
  if (isRejection(error))
    return failed(describeRejection(server), 'Give this login the right to write in the namespace.');
  return failed(describeUnavailable(server), 'Start it, or correct TEMPORAL_ADDRESS or the settings of TEMPORAL_TLS.');
}

async function checkCertificates({ address, tls = null }: TemporalServer): Promise<Finding[]> {
  if (tls === null) return [];
  const { hostname: host, port } = new URL(`tcp://${address}`);
  const servername = tls.serverName ?? undefined;
  const shown = await checkServer('the certificate of Temporal', {
    host: host.replace(/^\[|\]$/g, ''),
    port: Number(port),
    ...(servername !== undefined && { servername }),
  });
  return [
    ...shown,
    ...(tls.ca === null ? [] : checkPem('TEMPORAL_TLS_CA', tls.ca)),
    ...(tls.own === null ? [] : checkPem('TEMPORAL_TLS_CERT', tls.own.cert)),
  ];
}
