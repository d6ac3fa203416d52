import { setTimeout as wait } from 'node:timers/promises';
import type { Region } from '#domain/contract/regions.ts';
import type { HttpVisitor } from '#test/http-visitor.ts';
import type { Cluster } from './cluster.ts';
import { startGrant } from './events.ts';
import type { IngressController, Routes } from './ingress-controller.ts';
import type { Installation } from './installation.ts';
import { apiOrigin, consoleOrigin } from './release.ts';

const routeDeadlineMs = 60_000;
const changeDeadlineMs = 30_000;

/**
 * Checks the client's address and a page of the console that changes. Returns the problems; nothing
 * is checked where no Ingress controller runs.
 */
export async function checkIngress(
  { hostAddress }: Pick<Cluster, 'hostAddress'>,
  region: Installation & { visitor: HttpVisitor },
  report: (line: string) => void,
): Promise<string[]> {
  const { servers, routes } = region;
  if (routes === null) return [];
  const problems: string[] = [];
  const recorded = await readRecordedAddress(region, routes.api);
  report(`${servers.region}: the audit log has ${recorded} as the address of a read through the Ingress`);
  if (recorded !== hostAddress)
    problems.push(`${servers.region}: the audit log has ${recorded} instead of the client's ${hostAddress}`);
  if (!(await followPage(region))) problems.push(`${servers.region}: an open page of the console showed no change`);
  else report(`${servers.region}: an open page of the console received a change through the Ingress`);
  return problems;
}

/**
 * Opens the connection to a release's Ingresses, and resolves when the controller has both routes.
 */
export async function openRoutes(controller: IngressController, region: Region): Promise<Routes> {
  const routes = {
    api: await controller.open(apiOrigin(region)),
    console: await controller.open(consoleOrigin(region)),
  };
  await waitForRoute(`${routes.api}/v1/orgs/${crypto.randomUUID()}/seats`, 401);
  await waitForRoute(`${routes.console}/sign-in`, 200);
  return routes;
}

/** Resolves when the controller has a route and the certificate for it. @throws Error */
async function waitForRoute(url: string, status: number): Promise<void> {
  let last = 'no response';
  for (const giveUpAt = performance.now() + routeDeadlineMs; performance.now() < giveUpAt; await wait(250)) {
    const response = await fetch(url).catch(() => null);
    await response?.body?.cancel();
    if (response?.status === status) return;
    if (response !== null) last = String(response.status);
  }
  throw new Error(`the Ingress controller has no route to ${url}: ${last}`);
}

/** Reads with an address that the client claims. Returns the address in the audit log. */
async function readRecordedAddress({ organizations, pool }: Installation, api: string): Promise<string | null> {
  const [organization] = organizations;
  const response = await fetch(`${api}/v1/orgs/${organization?.id}/seats`, {
    headers: { authorization: `Bearer ${organization?.keys[0]}`, 'x-forwarded-for': '203.0.113.9' },
  });
  await response.body?.cancel();
  const { rows } = await pool.query<{ address: string | null }>(
    'select host(address) as address from audit_entry where organization_id = $1 and id = $2',
    [organization?.id, response.headers.get('request-id')],
  );
  return rows[0]?.address ?? null;
}

/**
 * Opens the list of a webhook's deliveries, creates one, and requests the list again, as an open
 * page does, until it has changed. Returns whether it has.
 */
async function followPage({
  organizations,
  webhookIds,
  pool,
  visitor,
}: Installation & { visitor: HttpVisitor }): Promise<boolean> {
  const [organization] = organizations;
  if (organization === undefined) return false;
  const path = `/o/${organization.id}/webhooks/${webhookIds.get(organization.id)}/deliveries`;
  const readVersion = async () => {
    const { text } = await visitor.get(path, { headers: { 'hx-request': 'true' } });
    return /data-version="([^"]+)"/.exec(text)?.[1];
  };
  const version = await readVersion();
  await startGrant(pool, organization);
  for (const giveUpAt = performance.now() + changeDeadlineMs; performance.now() < giveUpAt; await wait(250))
    if ((await readVersion()) !== version) return true;
  return false;
}
