import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import type pg from 'pg';
import type { Region } from '#domain/contract/regions.ts';
import { scopes } from '#domain/contract/scopes.ts';
import { createKey } from '#domain/keys/create.ts';
import type { KeySecrets } from '#domain/keys/key.ts';
import { openDatabase } from '#domain/open-database.ts';
import { createWebhook, type WebhookSettings } from '#domain/webhooks/create.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { addressBlocks, keyPeppers, keyTagSecrets, webhookSecretKeys } from '#runtime/settings/types.ts';
import { fixturePath } from '#test/fixtures.ts';
import { importFile } from '../../apps/import/document/import-file.ts';
import type { ImportResult } from '../../apps/import/document/result.ts';
import type { Routes } from './ingress-controller.ts';
import type { ReadOrganization } from './reads.ts';
import type { RegionServers } from './servers.ts';

/** The secrets of one region, as its pods get them. */
export interface RegionSecrets {
  keyPeppers: string;
  keyTagSecrets: string;
  webhookSecretKeys: string;
}

/** An installed region: its release, its data, its clients and receivers. */
export interface Installation {
  servers: RegionServers;
  secrets: RegionSecrets;
  /** Base URL of its API's Service. */
  api: string;
  /** Base URLs through its Ingresses; null where no Ingress controller runs. */
  routes: Routes | null;
  organizations: (ReadOrganization & { ownerUserId: string })[];
  /** Ids of webhooks, by the name of the endpoint. */
  webhookIds: Map<string, string>;
  /** The owner's connection. */
  pool: pg.Pool;
}

/**
 * Number of keys of an organization for the load; a key may read 120 times a minute and an
 * organization has at most 25.
 */
const keysPerOrganization = 20;

export function makeSecrets(): RegionSecrets {
  return {
    keyPeppers: `1:${randomBytes(32).toString('base64')}`,
    keyTagSecrets: randomBytes(32).toString('base64'),
    webhookSecretKeys: `1:${randomBytes(32).toString('base64')}`,
  };
}

/** The result of `fillRegion`; the secrets are by endpoint. */
type FilledRegion = Pick<Installation, 'organizations' | 'webhookIds'> & {
  webhookSecrets: Record<string, string[]>;
};

/**
 * Imports the fixture of a region with its dates moved to today. Done again, it changes nothing but
 * dates, and these only on another day.
 */
export function importFixture({ region, ownerUrl }: RegionServers): Promise<ImportResult> {
  return importFile({
    server: parsePostgresUrl(ownerUrl),
    source: createReadStream(fixturePath(`${region}.json`)),
    fileName: `${region}.json`,
    region,
    today: true,
    backfill: true,
  });
}

/**
 * Fills a migrated region: imports its organizations, and gives each keys and one webhook at the
 * receiver in the cluster. Returns the organizations and the webhooks' secrets by endpoint, which
 * is the organization's id.
 */
export async function fillRegion(options: {
  servers: RegionServers;
  secrets: RegionSecrets;
  receiver: string;
  allow: string;
}): Promise<FilledRegion> {
  const { servers, secrets, receiver, allow } = options;
  const { region, ownerUrl } = servers;
  const { organizations: imported } = await importFixture(servers);
  const database = await openDatabase({
    server: parsePostgresUrl(ownerUrl),
    applicationName: 'org-api-cluster-test',
    poolMax: 2,
  });
  const keySecrets = getKeySecrets(region, secrets);
  const webhookSettings: WebhookSettings = {
    allow: addressBlocks.parse(allow),
    sealingKeys: webhookSecretKeys.parse(secrets.webhookSecretKeys),
  };
  const organizations: Installation['organizations'] = [];
  const webhookIds = new Map<string, string>();
  const webhookSecrets: Record<string, string[]> = {};
  try {
    for (const { id, ownerUserId } of imported) {
      if (ownerUserId === null) continue;
      const input = { organizationId: id, creatorId: ownerUserId, scopes, label: 'load', expiresAt: null };
      const keys: string[] = [];
      for (let made = 0; made < keysPerOrganization; made += 1)
        keys.push((await createKey(database, { ...input, by: 'orgctl' }, keySecrets)).key);
      const webhook = await createWebhook(
        database,
        {
          organizationId: id,
          by: 'orgctl',
          url: `${receiver}/hooks/${id}`,
          eventTypes: ['client.started', 'client.ended', 'seat.given', 'seat.ended'],
          description: 'load',
        },
        webhookSettings,
      );
      webhookSecrets[id] = [webhook.secret];
      webhookIds.set(id, webhook.id);
      organizations.push({ id, ownerUserId, keys });
    }
  } finally {
    await database.close();
  }
  return { organizations, webhookIds, webhookSecrets };
}

/** Creates another key of an organization with the newest pepper. */
export async function addKey(
  { servers, secrets }: Pick<Installation, 'servers' | 'secrets'>,
  { id, ownerUserId }: Installation['organizations'][number],
): Promise<string> {
  const database = await openDatabase({
    server: parsePostgresUrl(servers.ownerUrl),
    applicationName: 'org-api-cluster-test',
    poolMax: 2,
  });
  const input = { organizationId: id, creatorId: ownerUserId, scopes, label: 'rotated', expiresAt: null };
  try {
    return (await createKey(database, { ...input, by: 'orgctl' }, getKeySecrets(servers.region, secrets))).key;
  } finally {
    await database.close();
  }
}

function getKeySecrets(region: Region, secrets: RegionSecrets): KeySecrets {
  return {
    region,
    peppers: keyPeppers.parse(secrets.keyPeppers),
    tagSecrets: keyTagSecrets.parse(secrets.keyTagSecrets),
  };
}
