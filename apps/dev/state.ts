import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { Region } from '#domain/contract/regions.ts';
import { StartupError } from '#runtime/errors.ts';
import { replaceFile } from './servers/process.ts';
import { acquireLock } from './state-lock.mjs';

/** An organization of `stack.json`. `sampleKey` has all scopes; null without an active owner. */
export interface StackOrganization {
  id: string;
  name: string;
  ownerUserId: string | null;
  sampleKey: string | null;
}

/** One region of a running stack, with base URLs. */
export interface StackRegion {
  region: Region;
  api: string;
  console: string;
  metrics: string;
  /** The owner's. */
  databaseUrl: string;
  /** The login of the platform's own application. */
  platformDatabaseUrl: string;
  redisUrl?: string;
  /** The sample receiver's. */
  receiver: string;
  temporalAddress: string;
  temporalNamespace: string;
  temporalUi?: string;
  /** How to sign in with the sample provider; absent when no organization of the region has it. */
  openIdProvider?: { url: string; organizationId: string; shortName: string; account: string };
  organizations: StackOrganization[];
}

/** The webhook that sends an organization's events to the sample receiver, with its secret. */
interface SampleWebhook {
  organizationId: string;
  webhookId: string;
  secret: string;
}

/** The member whose account at the sample provider signs them in, with the secret of their authenticator app. */
interface LinkedMember {
  organizationId: string;
  personId: string;
  totpSecret: string;
}

/** What the stack remembers of a region between starts, readable by the folder's owner only. */
export type RegionMemory = ReturnType<typeof createMemory>;

/** Secrets that a region's apps share, and nothing imported. */
function createMemory() {
  const secret = () => randomBytes(32).toString('base64');
  const password = () => randomBytes(18).toString('base64url');
  return {
    keyPeppers: `1:${secret()}`,
    keyTagSecrets: secret(),
    webhookSecretKeys: `1:${secret()}`,
    passwords: { api: password(), worker: password(), console: password(), platform: password() },
    /** Hashes of files. */
    imported: [] as string[],
    organizations: [] as StackOrganization[],
    webhooks: [] as SampleWebhook[],
    /** What the console presents to the sample provider. */
    providerSecret: secret(),
    /** Null until an organization got the sample provider: a later start does not add it again. */
    linkedMember: null as LinkedMember | null,
  };
}

/** Returns the organization whose key the examples use; undefined when none has a key. */
export const findSampleOrganization = ({ organizations }: StackRegion): StackOrganization | undefined =>
  organizations.find(({ sampleKey }) => sampleKey !== null);

export type State = ReturnType<typeof openState>;

/**
 * Opens the files of a state folder, for this process alone: a second `npm start` on it would stop
 * the first one's apps. Each file is replaced in one step, so that a kill damages none.
 *
 * @throws StartupError when another process has it, or when it cannot be created.
 */
export function openState(folder: string) {
  const at = (file: string) => path.join(folder, file);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o711 });
  } catch (cause) {
    const why = (cause as Error).message;
    throw new StartupError(`The folder ${folder} cannot be created (${why}): set ORG_API_STATE to another.`);
  }
  const { holder } = acquireLock(at('npm-start.lock')); // the end of this process unlocks it
  if (holder !== undefined && holder !== process.pid)
    throw new StartupError(
      `Another npm start (process ${holder}) runs this stack: use that one, stop it with Ctrl-C, or give this ` +
        'one its own ORG_API_STATE and ORG_API_PORT.',
    );
  const write = (file: string, text: string) => replaceFile(at(file), `${text}\n`);
  const writeJson = (file: string, value: unknown) => write(file, JSON.stringify(value, null, 2));
  const memories: Partial<Record<Region, RegionMemory>> = existsSync(at('secrets.json'))
    ? JSON.parse(readFileSync(at('secrets.json'), 'utf8'))
    : {};

  const state = {
    folder,
    stackFile: at('stack.json'),

    /** Writes what programs read of the stack, and a sample key of each region for `curl --config`. */
    writeStack(regions: StackRegion[]): void {
      writeJson('stack.json', { regions });
      for (const stack of regions) {
        const { sampleKey = null } = findSampleOrganization(stack) ?? {};
        if (sampleKey === null) rmSync(at(`${stack.region}.curl`), { force: true });
        else write(`${stack.region}.curl`, `header = "Authorization: Bearer ${sampleKey}"`);
      }
    },

    /** Returns what is known of the region. Creates its secrets the first time. */
    getMemory(region: Region): RegionMemory {
      return state.writeMemory(region, { ...createMemory(), ...memories[region] });
    },

    writeMemory(region: Region, memory: RegionMemory): RegionMemory {
      memories[region] = memory;
      writeJson('secrets.json', memories);
      return memory;
    },
  };
  return state;
}
